"""The segment log shared by all topics of a process: group commit in one thread, recovery, trimming."""
