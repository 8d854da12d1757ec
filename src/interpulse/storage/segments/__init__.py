"""The segment log: what all topics of a broker append to, synced in groups."""
