"""The `pulsar` data source and the replication job. Only the modules below import pyspark, not this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interpulse.spark.data_source import register
    from interpulse.spark.session import recommended_conf

__all__ = ["recommended_conf", "register"]


def __getattr__(name: str) -> Any:
    if name == "register":
        from interpulse.spark.data_source import register

        return register
    if name == "recommended_conf":
        from interpulse.spark.session import recommended_conf

        return recommended_conf
    raise AttributeError(name)
