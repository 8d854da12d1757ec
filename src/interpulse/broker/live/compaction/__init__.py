"""Compaction: the newest message of every key, stored beside the log.

* `compaction`: one run over a topic; `choice`: the surviving messages
* `log_positions`: positions in a log and reads of it, compacted or not
"""
