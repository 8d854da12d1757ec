"""The Spark job that compares topics of two clusters, entry by entry or message by message.

`digests` makes small rows of what each side holds, `judging` finds what is wrong by Spark's sorts, `findings` says it
to people, `verification` runs all of it as Spark jobs, `comparisons` says what is compared with what.
"""
