"""Durable state: metadata, and the logs of topics. Entries are opaque bytes here.

* `api`: the three seams, `MetadataStore`, `LogStore` and `Log`, with their errors
* `sqlite`: metadata; `cas`: commits that are tried again after a conflict; `watches`: callbacks on changes;
  `sessions`: what ephemeral keys live as long as; `guarded`: commits that rest on a lock; `prompt`: reads that wait no
  longer than the session lives
* `topic_log_store`, `topic_log`: the log of a topic, its ledgers (`ledgers`, `topic_records`), its newest entries
  (`tail_cache`) and what compaction kept of it (`compacted`), over a journal (`journals`)
* `segments`: the journal on disk, which all topics share; `segments.writer` writes and syncs
* `cursors`: the records of cursors, and the seam to where they are kept
* `managed_ledger`: records as Pulsar has them, and cursors with ledgers
* `zookeeper`: metadata in ZooKeeper, with a client of it
* `bookkeeper`: a client of BookKeeper, and the journal on it
* `memory`: metadata and journal without a disk, for tests and benchmarks
* `lock`, `disk_space`: one process per data directory, the space left in it
* `meters`: what is written and read, and how long it takes
"""
