"""Tenants, namespaces and clusters: their records, a new cluster, and the connections to remote ones."""
