"""The differences between the metadata of a broker alone and those of a cluster, which have Pulsar's own layout.

It is chosen with the stores, and passed to the code that reads or writes these records.
Source: docs/reference/cluster-protocol.md#one-broker-alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from interpulse.broker import metadata_paths as keys
from interpulse.storage.cursors import JSON_CURSORS, CursorCodec
from interpulse.storage.logs.topic_records import JSON_RECORDS, TopicRecordCodec
from interpulse.storage.managed_ledger.cursor_codec import PulsarCursors
from interpulse.storage.managed_ledger.topic_codec import PulsarTopicRecords


@dataclass(frozen=True, slots=True)
class Layout:
    """Forms and places of records."""

    topic_records: TopicRecordCodec
    cursors: CursorCodec
    failure_domains: Callable[[str], str]
    """The key above the failure domains of a cluster, by its name."""
    shared: bool
    """True if other brokers work on the same metadata.

    Then the bundles of a namespace have their own record, and only the owner of a topic writes its records and cursors.
    """


ALONE: Final = Layout(JSON_RECORDS, JSON_CURSORS, keys.failure_domains, shared=False)
IN_CLUSTER: Final = Layout(PulsarTopicRecords(), PulsarCursors(), keys.failure_domains_in_cluster, shared=True)
