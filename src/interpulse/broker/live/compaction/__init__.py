"""Compaction: the newest message of every key, stored beside the log.

* `compaction`: one run over a topic; `choice`: the surviving messages; `compaction_entries`: one compacted entry
* `compacted_reads`: reads that begin with compacted entries; `log_positions`: positions in a log, compacted or not
"""
