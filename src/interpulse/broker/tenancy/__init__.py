"""Tenants, namespaces and clusters: their records, and how other clusters are reached."""
