"""Switch of namespaces between the two clusters of a pair, for the commands ``interpulse failover``.

`pair_config` reads the file of a pair. `site` reads one cluster, and its protocol is what a switch needs of it: ours by
roles (`our_site`), real ones by a fence that this process holds (`real_site`). `commands` runs operations: under a
`lease` on the `control_topic` of both sites, with a `journal`, by the engine of `operation`, which does the steps of
`steps`. Each may be killed at any moment and repeated.
`preflight` finds what a switch would break, and `planning` writes the runbook for doing it by hand.

Nothing here deletes, truncates, terminates or unloads a topic, or shortens the clusters of a namespace.
"""
