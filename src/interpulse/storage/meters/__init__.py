"""What is written and read, and how long it takes: `write_meter` of logs, `metadata_meter` of metadata.

Both count in buckets: `histogram`.
"""
