"""Decisions as pure functions: a view of the stored state goes in, an answer and changes come out.

* Topics: `topics` answers clients and operators from a `topic_view`. `topic_diagnosis` finds
  topics that break the rule of PIP-414, `inactivity` finds unused topics.
* Namespaces and tenants: `namespaces`, `tenants`, `clusters`, `permissions`, `isolation`.
* Policies: `policy_checks` validates requests of operators, `policy_changes` applies them, `effective_policies`
  resolves the policy that applies; `limits` enforces them.
* Lookup: `lookup`, `bundles`, `placement`. Schemas: `schemas`, `schema_compatibility`.
* Replication: `replication` decides the target clusters, `provisioning` the changes a topic needs there.
  `inventory` is a namespace on one cluster, `comparison` finds the differences between two of them.
* `topic_stats` sums the stats of partitions. The result of every rule is a `Decision` of `interpulse.model.changes`.
"""
