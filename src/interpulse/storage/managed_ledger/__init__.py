"""Records of topics, cursors and schemas as Pulsar itself writes them, in protobuf.

* `compression`: large records are compressed
* `topic_codec`, `cursor_codec`: the records of topics and cursors, and the entries of cursor ledgers
"""
