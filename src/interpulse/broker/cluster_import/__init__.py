"""The data directory of a broker that was alone, copied into a cluster.

Ids of ledgers are given by the cluster, so each ledger is copied into a new one with the same entries, and what names a
position is moved there. A topic appears with all it has, in one piece, once its copy was read back and compared.
"""
