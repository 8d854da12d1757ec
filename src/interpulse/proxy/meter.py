"""Counts of the proxy, and its page for Prometheus with Pulsar's names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from interpulse.authentication.authentication import AccessMeter
from interpulse.serving.address_events import DroppedConnections
from interpulse.serving.exposition import Exposition
from interpulse.wire import pulsar_api_pb2 as pb

QUESTIONS: Final[Mapping[int, str]] = {
    pb.BaseCommand.LOOKUP: "lookup",
    pb.BaseCommand.PARTITIONED_METADATA: "partitions_metadata",
    pb.BaseCommand.GET_TOPICS_OF_NAMESPACE: "get_topics_of_namespace",
    pb.BaseCommand.GET_SCHEMA: "get_schema",
    pb.BaseCommand.BATCH_LOOKUP: "batch_lookup",
}
"""The requests that the proxy answers, by their names in metrics."""


class ProxyMeter:
    """Counts since the proxy started."""

    def __init__(self) -> None:
        self.active_connections = 0
        self.new_connections = 0
        self.rejected_connections = 0
        self.binary_ops = 0
        self.binary_bytes = 0
        self.batch_lookup_topics = 0
        self.requests: Counter[int] = Counter()
        """Requests, by type of command."""
        self.rejected: Counter[int] = Counter()
        """Requests without a permit."""
        self.dropped = DroppedConnections()
        self.access: AccessMeter | None = None
        """None if clients need not authenticate."""

    def moved(self, size: int) -> None:
        """Count the bytes of one read of a data connection, from either side."""
        self.binary_ops += 1
        self.binary_bytes += size

    def page(self, brokers_registered: int) -> bytes:
        """Return the page for Prometheus."""
        page = Exposition()

        def add(name: str, kind: str, text: str, value: float) -> None:
            page.family(f"pulsar_proxy_{name}", "gauge" if kind == "gauge" else "counter", text).append(
                f"pulsar_proxy_{name} {value}\n"
            )

        add("active_connections", "gauge", "Connections of clients.", self.active_connections)
        add("new_connections", "counter", "Connections of clients since the start.", self.new_connections)
        add("rejected_connections", "counter", "Connections closed above a limit.", self.rejected_connections)
        add("binary_ops", "counter", "Reads of data connections, from both sides.", self.binary_ops)
        add("binary_bytes", "counter", "Bytes of data connections, from both sides.", self.binary_bytes)
        for kind, name in QUESTIONS.items():
            add(f"{name}_requests", "counter", f"Requests of type {name}.", self.requests[kind])
            add(f"rejected_{name}_requests", "counter", f"Requests of type {name} refused.", self.rejected[kind])
        add("batch_lookup_topics", "counter", "Topics in batch lookups.", self.batch_lookup_topics)
        add("brokers", "gauge", "Brokers that the proxy asks.", brokers_registered)
        text = "Connections dropped: of clients that were refused, broke the protocol, or did not answer."
        add("dropped_connections", "counter", text, self.dropped.count)
        if self.access is not None:
            self.access.write(page)
        return page.render()
