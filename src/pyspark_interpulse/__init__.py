"""Spark looks for packages of this name and registers their ``DefaultSource``. Nothing else belongs here."""

from interpulse.spark.data_source import PulsarDataSource as DefaultSource

__all__ = ["DefaultSource"]
