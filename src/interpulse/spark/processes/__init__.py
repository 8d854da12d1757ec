"""Processes of Spark and of Python: workers with their daemon, the client in each, and errors that cross to Java."""
