"""Decisions as pure functions: a view of what is stored goes in, an answer and changes come out.

* Topics: `topics` answers clients, `topic_operations` operators; both look at a `topic_view` and share `topic_checks`.
  `consistency` is the rule of PIP-414, `topic_diagnosis` finds what breaks it, `inactivity` what is not used any more.
* Namespaces and tenants: `new_namespace`, `tenants`, `clusters`, `permissions`.
* Policies: `policy_checks` reads what operators send, `effective_policies` says what applies; `limits`, `unacked` and
  `backlog_quota` enforce them.
* Lookup: `lookup`, `bundles`. Schemas: `schemas`, `schema_compatibility`.
* Replication: `replication` decides where to, `provisioning` what a topic needs there.
  `inventory` is a namespace as a cluster has it, `comparison` finds the differences between two of them.
* `decision` is what rules return; `topic_stats` sums the stats of partitions.
"""
