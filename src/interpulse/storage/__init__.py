"""Durable state: metadata, and the logs of topics. Entries are opaque bytes here.

* `api`: the three seams, `MetadataStore`, `LogStore` and `Log`, with their errors; `sessions`: the lifetime of
  ephemeral keys; `cas`: commits that are tried again after a conflict
* `metadata`: metadata in SQLite, and stores that guard commits by a lock or bound reads by a session
* `logs`: the log of a topic: its ledgers, its newest entries and its compacted ledger, over a journal
* `segments`: the journal on disk, which all topics share; `segments.writer` writes and syncs
* `cursors`: the records of cursors, and the seam to their store
* `managed_ledger`: records in Pulsar's form, and cursors with ledgers
* `zookeeper`: metadata in ZooKeeper, with a client of it
* `bookkeeper`: a client of BookKeeper, and the journal on it
* `directory_lock`: one process per data directory
* `meters`: counts and latencies of reads and writes
"""
