"""Records of topics, cursors and schemas as Pulsar itself writes them, in protobuf.

* `compression`: bytes as messages, compressed if they are many
* `topic_codec`, `cursor_codec`, `schema_codec`: the records of topics, cursors and schemas, and the entries of ledgers
* `cursor_ledgers`: cursors with ledgers, over ZooKeeper and BookKeeper
"""
