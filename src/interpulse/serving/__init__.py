"""Shared code of programs that listen, the broker and the proxy: settings, addresses, TLS, limits, web pages."""
