"""The Spark job that compares topics of two clusters, entry by entry or message by message.

`comparisons` names the topics of both sides, `digests` makes small rows of their contents, `judging` finds faults by
Spark's sorts, `verification` runs all of it as Spark jobs.
"""
