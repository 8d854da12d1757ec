"""Compaction: the newest message of every key is kept, beside the log.

* `compaction`: one run over a topic; `choice`: which messages stay; `compaction_entries`: one entry of them
* `compacted_reads`: reads that begin with what compaction kept; `log_positions`: positions in a log, compacted or not
"""
