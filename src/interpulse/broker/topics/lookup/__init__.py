"""Where topics are: `lookup` names their broker, `topic_patterns` and `topic_watches` find those of a namespace.

`bundles` has the bundles that namespaces are split into.
"""
