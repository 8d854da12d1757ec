"""Geo-replication as the broker sees it: the job it supervises, the topics on other clusters, the status of both."""
