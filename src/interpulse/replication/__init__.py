"""The control side of replication, for the broker's admin door and the Spark job alike."""
