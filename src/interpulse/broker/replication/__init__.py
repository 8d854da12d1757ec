"""Geo-replication of the broker: enabled, followed on remote clusters, and reported; the Spark job copies."""
