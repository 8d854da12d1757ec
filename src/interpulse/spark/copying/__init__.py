"""Entries that tasks copy from broker to broker; Spark carries only ranges and reports.

The offsets, lanes and lane files are those of a stream of entry mode, so a checkpoint of one continues with the other.
"""
