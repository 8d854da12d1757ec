"""The figures of the broker as a whole, under PIP-264's names."""

from __future__ import annotations

from typing import Final

from interpulse.broker.instruments import Instruments
from interpulse.broker.telemetry.figure import Attributes, Figures, Instrument

__all__ = ["BROKER_INSTRUMENTS", "broker_figures"]

_CONNECTIONS: Final = "pulsar.broker.connection.count"
_CREATED: Final = "pulsar.broker.connection.create.operation.count"
_LOOKUPS: Final = "pulsar.broker.request.topic.lookup.concurrent."
_LOADS: Final = "pulsar.broker.topic.load.concurrent.usage"
BROKER_INSTRUMENTS: Final = (
    Instrument(_CONNECTIONS, "updown", "{connection}", "Connections of the binary protocol, by status."),
    Instrument(_CREATED, "counter", "{operation}", "Clients let in or refused."),
    Instrument(f"{_LOOKUPS}usage", "updown", "{operation}", "Lookups that hold a permit."),
    Instrument(f"{_LOOKUPS}limit", "updown", "{operation}", "Permits there are (maxConcurrentLookupRequest)."),
    Instrument(_LOADS, "updown", "{operation}", "Topics being loaded."),
)


def broker_figures(instruments: Instruments, *, lookups_max: int) -> Figures:
    """Everything that belongs to no single topic."""
    connections = instruments.connections()
    status, outcome = "pulsar.connection.status", "pulsar.connection.create.operation.status"
    nothing: Attributes = {}
    return {
        _CONNECTIONS: [
            (connections.active, {status: "active"}),
            (connections.created, {status: "open"}),
            (connections.created - connections.active, {status: "close"}),
        ],
        _CREATED: [(connections.accepted, {outcome: "success"}), (connections.refused, {outcome: "failure"})],
        f"{_LOOKUPS}usage": [(instruments.lookups_pending(), nothing)],
        f"{_LOOKUPS}limit": [(lookups_max, nothing)],
        _LOADS: [(instruments.topic_loads.under_way, nothing)],
    }
