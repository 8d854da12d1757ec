"""The differences between the metadata of a broker alone and those of a cluster, which have Pulsar's own layout.

It is chosen with the stores, and handed to whoever reads or writes one of these records. Source: cluster 4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from interpulse.broker import metadata_paths as keys
from interpulse.storage.cursors.cursor_records import JSON_CURSORS, CursorCodec
from interpulse.storage.managed_ledger.cursor_codec import PulsarCursors
from interpulse.storage.managed_ledger.topic_codec import PulsarTopicRecords
from interpulse.storage.topic_records import JSON_RECORDS, TopicRecordCodec

__all__ = ["ALONE", "IN_CLUSTER", "Layout"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Forms and places of records."""

    topic_records: TopicRecordCodec
    cursors: CursorCodec
    failure_domains: Callable[[str], str]
    """The key above the failure domains of a cluster, by its name."""
    shared: bool
    """Other brokers work on the same metadata: bundles of namespaces have a record of their own, and records of topics
    and cursors are written by the owner of their topic alone."""


ALONE: Final = Layout(JSON_RECORDS, JSON_CURSORS, keys.failure_domains, shared=False)
IN_CLUSTER: Final = Layout(PulsarTopicRecords(), PulsarCursors(), keys.failure_domains_in_cluster, shared=True)
