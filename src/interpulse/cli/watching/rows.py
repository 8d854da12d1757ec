"""Rows of ``top``, built from topic statistics. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Row = dict[str, Any]
_MB: Final = 1e6


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its JSON name, its heading, and its format for people."""

    key: str
    heading: str
    form: Callable[[Any], str] = str

    @property
    def is_number(self) -> bool:
        return self.form is not str


@dataclass(frozen=True, slots=True)
class Table:
    """One kind of rows. ``sort`` is the heading of the default sort column."""

    rows: Callable[[str, Mapping[str, Any]], Iterable[Row]]
    columns: tuple[Column, ...]
    sort: str

    @property
    def headings(self) -> list[str]:
        return [column.heading for column in self.columns]

    def column(self, heading: str) -> Column:
        return next(column for column in self.columns if column.heading == heading)


def sorted_rows(table: Table, rows: Iterable[Row], heading: str) -> list[Row]:
    """Sort rows by a column: numbers in descending order, text in alphabetical order, ties by name."""
    column, names = table.column(heading), [column.key for column in table.columns if not column.is_number]
    named = sorted(rows, key=lambda row: [str(row[key]) for key in names])
    if column.is_number:
        return sorted(named, key=lambda row: row[column.key] or 0, reverse=True)
    return sorted(named, key=lambda row: str(row[column.key]))


def shown(table: Table, rows: Sequence[Row]) -> list[list[str]]:
    """Format the cells of a row for people."""
    return [
        ["" if row[column.key] is None else column.form(row[column.key]) for column in table.columns] for row in rows
    ]


def _topics(topic: str, stats: Mapping[str, Any]) -> Iterator[Row]:
    subscriptions = _objects(stats, "subscriptions")
    yield {
        "topic": topic,
        **{rate: _number(stats, rate) for rate in ("msgRateIn", "msgThroughputIn", "msgRateOut", "msgThroughputOut")},
        "backlog": sum(_number(subscription, "msgBacklog") for subscription in subscriptions.values()),
        "storageSize": _number(stats, "storageSize"),
        "producers": len(stats.get("publishers") or ()),
        "subscriptions": len(subscriptions),
        "consumers": sum(len(subscription.get("consumers") or ()) for subscription in subscriptions.values()),
    }


def _subscriptions(topic: str, stats: Mapping[str, Any]) -> Iterator[Row]:
    for name, subscription in _objects(stats, "subscriptions").items():
        yield {
            "topic": topic,
            "subscription": name,
            "type": str(subscription.get("type") or ""),
            "msgRateOut": _number(subscription, "msgRateOut"),
            "msgThroughputOut": _number(subscription, "msgThroughputOut"),
            "backlog": _number(subscription, "msgBacklog"),
            "unacked": _number(subscription, "unackedMessages"),
            "redelivered": _number(subscription, "msgRateRedeliver"),
            "consumers": len(subscription.get("consumers") or ()),
        }


def _replication(topic: str, stats: Mapping[str, Any]) -> Iterator[Row]:
    for cluster, replicator in _objects(stats, "replication").items():
        reported = replicator.get("status")  # Apache Pulsar reports less
        status = reported if isinstance(reported, Mapping) else {}
        state = status.get("state") or ("CONNECTED" if replicator.get("connected") else "DISCONNECTED")
        yield {
            "topic": topic,
            "cluster": cluster,
            "state": state,
            "msgRateOut": _number(replicator, "msgRateOut"),
            "msgThroughputOut": _number(replicator, "msgThroughputOut"),
            "backlog": _number(replicator, "replicationBacklog"),
            "delaySeconds": _number(replicator, "replicationDelayInSeconds"),
            "reason": status.get("reason"),
        }


def _objects(stats: Mapping[str, Any], key: str) -> dict[str, Mapping[str, Any]]:
    return {name: value for name, value in (stats.get(key) or {}).items() if isinstance(value, Mapping)}


def _number(values: Mapping[str, Any], key: str) -> float:
    value = values.get(key)
    return value if isinstance(value, int | float) else 0


_rate = "{:,.1f}".format
_count = "{:,.0f}".format


def _megabytes(value: float) -> str:
    return f"{value / _MB:,.2f}"


_OUT: Final = (Column("msgRateOut", "OUT/S", _rate), Column("msgThroughputOut", "OUT-MB/S", _megabytes))

TABLES: Final[Mapping[str, Table]] = {
    "topics": Table(
        _topics,
        (
            Column("topic", "TOPIC"),
            Column("msgRateIn", "IN/S", _rate),
            Column("msgThroughputIn", "IN-MB/S", _megabytes),
            *_OUT,
            Column("backlog", "BACKLOG", _count),
            Column("storageSize", "STORED-MB", _megabytes),
            Column("producers", "PRODUCERS", _count),
            Column("subscriptions", "SUBSCRIPTIONS", _count),
            Column("consumers", "CONSUMERS", _count),
        ),
        sort="IN/S",
    ),
    "subscriptions": Table(
        _subscriptions,
        (
            Column("topic", "TOPIC"),
            Column("subscription", "SUBSCRIPTION"),
            Column("type", "TYPE"),
            *_OUT,
            Column("backlog", "BACKLOG", _count),
            Column("unacked", "UNACKED", _count),
            Column("redelivered", "REDELIVERED/S", _rate),
            Column("consumers", "CONSUMERS", _count),
        ),
        sort="BACKLOG",
    ),
    "replication": Table(
        _replication,
        (
            Column("topic", "TOPIC"),
            Column("cluster", "CLUSTER"),
            Column("state", "STATE"),
            *_OUT,
            Column("backlog", "BACKLOG", _count),
            Column("delaySeconds", "DELAY-S", _count),
            Column("reason", "REASON"),
        ),
        sort="BACKLOG",
    ),
}
"""Tables by the argument of ``top`` that selects them."""
