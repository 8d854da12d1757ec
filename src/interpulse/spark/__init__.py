"""The `pulsar` data source and the replication job. Only the modules below import pyspark, not this package."""
