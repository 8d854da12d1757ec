"""The Spark job that compares the topics and policies of two clusters, and the plan that makes the target equal.

`comparing` distributes the reading of namespaces, joins two such tables and hands unequal rows to the rules; `plans`
makes a plan of the differences and applies it.
"""
