"""Import of a standalone broker's data directory into a cluster.

The cluster assigns the ids of ledgers, so each ledger is copied into a new one with the same entries, and positions are
translated. A topic appears complete, in one commit, after its copy was read back and compared.
"""
