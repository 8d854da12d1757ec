"""The options of a cluster where nothing else is asked for: its address, and who we are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from interpulse.spark.options.access import Access
from interpulse.spark.options.connection_options import access_options, service_url_option
from interpulse.spark.options.option import Purpose, build_options, read_values

__all__ = ["ClusterOptions", "parse_cluster_options"]


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """See the module."""

    service_url: str = service_url_option()
    access: Access = access_options()  # noqa: RUF009 - a dataclass field


def parse_cluster_options(mapping: Mapping[str, str]) -> ClusterOptions:
    """Those of the data source, by the same names. Raises OptionError with every problem."""
    problems: list[str] = []
    values = read_values(ClusterOptions, mapping, Purpose.BATCH_READ, problems)
    return build_options(ClusterOptions, values, problems)
