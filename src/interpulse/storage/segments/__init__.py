"""The journal on disk: entries of all topics in one file after the other.

* `open`: recovers the segments of a directory and opens the log store over them
* `journal`: collects what topics append into groups, and tells them when a group is durable
* `writer`: the thread that writes groups; `files`: the file system, with the fsync
* `records`, `index`: the bytes of a record and of an index; `segment_set`: the records of all segments, in memory
* `reader`: reads entries back; `recovery`: what is left of a segment after a crash
"""
