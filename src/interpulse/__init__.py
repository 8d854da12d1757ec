"""The topic plane of Apache Pulsar in Python.

``interpulse.client`` is the asyncio client, ``interpulse.sync`` its blocking twin, ``interpulse.spark`` the PySpark
data source. ``interpulse standalone`` starts a broker. Importing this package starts nothing.
"""

__all__ = ["__version__"]

__version__ = "0.2.0"
