"""Broker entry metadata in front of the entries of persistent topics: ``brokerEntryMetadataInterceptors``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

_INDEX: Final = "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor"
_TIME: Final = "org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor"

INTERCEPTOR_CLASSES: Final = (_INDEX, _TIME)
"""The Java classes that ``brokerEntryMetadataInterceptors`` may name."""


@dataclass(frozen=True, slots=True)
class BrokerEntryFields:
    """The fields in front of entries."""

    timed: bool = False
    indexed: bool = False

    @classmethod
    def named(cls, classes: str) -> Self | None:
        """Return the fields for comma-separated names of Java classes; None if there are none."""
        listed = classes.split(",")
        return cls(timed=_TIME in listed, indexed=_INDEX in listed) if classes else None
