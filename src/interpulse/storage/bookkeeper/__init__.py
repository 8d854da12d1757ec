"""Entries in BookKeeper: a client of bookies, and of the metadata of ledgers in ZooKeeper, and the journal on it.

* `packets`: an entry with its digest; `protocol`: one end of a connection to a bookie without IO; `errors`: what can go
  wrong
* `ledger_metadata`, `ledger_paths`, `bookie_addresses`: what lies in ZooKeeper, and where; `metadata_store` reads and
  writes it
* `connection`: a socket to a bookie; `bookies`: all of them, and the choice of some for a ledger
* `pending`: which entries are acknowledged; `replica`: entries sent to one bookie until it has them; `writer`: a ledger
  that grows
* `reader`: entries of a ledger, from the bookie that has them; `recovery`: the end of a ledger that another wrote
* `client`: ledgers created, opened, recovered, deleted
* `journal`: the ledgers of logs; `ledger_purposes`: what is written down with a ledger about its use
"""
