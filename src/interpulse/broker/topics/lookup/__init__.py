"""The brokers of topics: `lookup` finds them, `topic_watches` the topics of a namespace that match a pattern.

`bundles` has the bundles that namespaces are split into.
"""
