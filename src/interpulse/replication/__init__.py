"""The control side of replication, for the broker's admin API and the Spark job alike.

`provision` makes a topic and its schemas on the remote cluster; `snapshot` reads a namespace of both clusters, and
`adjust` makes the remote one equal (PIP-433); `connect` and `naming` reach a registered cluster; `copy` turns an entry
of the source into the entry on the target.
"""
