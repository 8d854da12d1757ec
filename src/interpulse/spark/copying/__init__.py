"""Entries copied by the tasks themselves, from broker to broker: only what each range became goes through Spark.

What travels between Spark's processes are ranges and reports. The offsets, lanes and lane files are those of a stream
of entry mode, so a checkpoint of one continues with the other.
"""
