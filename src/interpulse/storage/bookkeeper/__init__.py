"""Entries in BookKeeper: a client of bookies and of the ledgers' metadata in ZooKeeper, and the journal on it.

* `packets`: an entry with its digest; `protocol`: one end of a connection to a bookie without IO; `errors`: the errors
  of all modules
* `records`: the content of ZooKeeper, and its paths; `metadata_store` reads and writes it
* `connection`: a socket to a bookie; `bookies`: all of them, and the choice of some for a ledger
* `pending`: the entries that are not acknowledged yet; `replica`: entries sent to one bookie until it has them;
  `writer`: a ledger that grows
* `reader`: entries of a ledger, from any bookie that has them; `recovery`: the end of a ledger that another process
  wrote
* `client`: ledgers created, opened, recovered, deleted; `journal`: the ledgers of logs
"""
