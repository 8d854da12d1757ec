"""Calls about policies of namespaces and topics, made from the catalogue of policies.

`policy_values` reads the values in bodies and queries.
"""
