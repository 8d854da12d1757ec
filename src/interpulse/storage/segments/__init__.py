"""The journal on disk: entries of all topics, in one file after the other.

* `journal`: groups the entries that topics append, and reports durable groups; opens the log store of a directory
* `writer`: the thread that writes groups; `files`: the file system, with the fsync
* `records`: the bytes of a record and of an index; `segment_set`: the records of all segments, in memory
* `reader`: reads entries back; `recovery`: repairs segments after a crash
* `ledger_owners`: ids of ledgers, and the log of each
* `disk_space`: the free space of the data directory
"""
