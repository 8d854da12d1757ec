"""Connections to brokers and web services: credentials, TLS, waiting between attempts."""
