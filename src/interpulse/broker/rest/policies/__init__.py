"""Policies of namespaces and topics, and how their bodies are read."""
