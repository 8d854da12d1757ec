"""The brokers of topics, the topics of a namespace that match a pattern, and the bundles of namespaces."""
