"""Entries in BookKeeper: a client of bookies, and of the metadata of ledgers in ZooKeeper.

* `packets`: an entry with its digest; `protocol`: one end of a connection to a bookie without IO; `errors`: what can go
  wrong
* `ledger_metadata`, `ledger_paths`, `bookie_addresses`: what lies in ZooKeeper, and where; `metadata_store` reads and
  writes it
"""
