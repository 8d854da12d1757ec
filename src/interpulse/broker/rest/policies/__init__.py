"""Calls about policies of namespaces and topics, made from the catalogue of policies.

`topic_clusters` has the replication clusters of topics, `namespace_properties` the properties of namespaces, and
`policy_values` the values in bodies and queries.
"""
