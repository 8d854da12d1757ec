"""Spark looks for packages of this name and registers their ``DefaultSource``. Nothing else belongs here."""

from interpulse.spark.source import PulsarDataSource as DefaultSource

__all__ = ["DefaultSource"]
