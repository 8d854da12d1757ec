"""Calls about policies: one line of a table per policy in `namespace_policies` and `topic_policies`.

`topic_clusters` has the replication clusters of topics, `namespace_rates` what is stored by cluster or type,
`namespace_properties` what means nothing to the broker, `policy_bodies` the bodies that namespaces and topics share.
"""
