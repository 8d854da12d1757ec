"""The brokers of topics: `lookup` finds them, `topic_patterns` and `topic_watches` find the topics of a namespace.

`bundles` has the bundles that namespaces are split into.
"""
