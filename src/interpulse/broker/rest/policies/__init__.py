"""Calls about policies: one line of a table per policy in `namespace_policies` and `topic_policies`.

`namespace_rates` has those that are stored by cluster or type, `namespace_properties` those that mean nothing to the
broker, `policy_bodies` the bodies that namespaces and topics share.
"""
