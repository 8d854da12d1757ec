"""The Spark job that compares the topics and policies of two clusters, and the plan that makes the target equal.

`cluster_reading` reads one namespace of a cluster, `inventory_job` all of them as a table, `comparing` joins two such
tables and hands what is not equal to the rules, `plans` makes a plan of the differences and carries it out.
"""
