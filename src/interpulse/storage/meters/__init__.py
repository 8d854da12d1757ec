"""Counts and latencies of reads and writes: `write_meter` of logs, `metadata_meter` of metadata.

Both count in buckets: `histogram`.
"""
