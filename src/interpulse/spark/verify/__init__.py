"""The Spark job that compares topics of two clusters, entry by entry or message by message.

`digests` makes small rows of what each side holds, `judging` hands them in groups to the rule
`interpulse.rules.copies`, `verification` runs both as Spark jobs, `comparisons` says what is compared with what.
"""
