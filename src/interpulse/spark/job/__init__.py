"""The geo-replication job."""
