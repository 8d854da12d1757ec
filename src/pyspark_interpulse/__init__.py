"""The package through which Spark discovers the data source: it registers ``DefaultSource``.

Nothing else belongs here.
"""

from interpulse.spark.data_source import PulsarDataSource as DefaultSource

__all__ = ["DefaultSource"]
