"""Switch of namespaces between the two clusters of a pair, for the commands ``interpulse failover``.

`pair_config` reads the file of a pair. `site` reads one cluster, and its protocol is what a switch needs of it: ours by
roles (`our_site`). Nothing here deletes, truncates, terminates or unloads a topic, or shortens a list of clusters.
"""
