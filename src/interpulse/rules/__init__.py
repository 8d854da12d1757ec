"""Decisions as pure functions: a view of the stored state goes in, an answer and changes come out.

* Topics: `topics` answers clients, `topic_operations` operators. Both read a `topic_view` and share `topic_checks`.
  `consistency` is the rule of PIP-414, `topic_diagnosis` finds topics that break it, `inactivity` finds unused topics.
* Namespaces and tenants: `new_namespace`, `tenants`, `clusters`, `permissions`.
* Policies: `policy_checks` validates requests of operators, `effective_policies` resolves the policy that applies;
  `limits`, `unacked` and `backlog_quota` enforce them.
* Lookup: `lookup`, `bundles`. Schemas: `schemas`, `schema_compatibility`.
* Replication: `replication` decides the target clusters, `provisioning` the changes a topic needs there.
  `inventory` is a namespace on one cluster, `comparison` finds the differences between two of them.
* `decision` is the result of every rule; `topic_stats` sums the stats of partitions.
"""
