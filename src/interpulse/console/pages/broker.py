"""The page of this broker: settings with their origins, statistics of writes, and the data on its disk alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from interpulse.console.broker_facts import BrokerFacts
from interpulse.console.visit import Visit

_ORIGINS: Final = ("", "changed", "dynamic", "start", "default")
_QUANTILES: Final = (0.5, 0.99, 1.0)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as it is in force."""

    key: str
    value: str
    default: str
    origin: str
    """``dynamic`` if set while brokers run, ``start`` if from file, environment or command line, else ``default``."""

    dynamic: bool
    """True if the page may change it."""

    help: str
    problem: str = ""
    """The reason why a stored dynamic value is not in force."""


@dataclass(frozen=True, slots=True)
class Writes:
    """The log of this broker since it started."""

    entries: int
    mean_wait_ms: float | None
    waits_ms: dict[str, float]
    """Waits of the latest groups of entries that became durable together."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """The data of this broker, and where copies of it are."""

    topics: int
    bytes: int
    replicated: int
    """Pairs of a topic and another cluster."""

    not_copied: int
    """Messages that wait for one."""

    elsewhere: str
    """Other places of the entries; empty if they are only here."""


@dataclass(frozen=True, slots=True)
class BrokerModel:
    """The page."""

    broker_id: str
    version: str
    settings: tuple[Setting, ...]
    origin: str
    origins: tuple[str, ...]
    text: str
    writes: Writes
    holdings: Holdings | None
    """Topics and clients of the broker; None while they are being counted."""

    disk_problem: str


async def build(visit: Visit) -> BrokerModel:
    """Build the page. Raise AuthorizationError unless the visitor may administer brokers."""
    values = await visit.admin.brokers.runtime_configuration()
    stored = await visit.admin.brokers.dynamic_configuration()
    origin, text = visit.choice("origin", _ORIGINS), visit.text("text").strip()
    broker = visit.broker
    settings = [_setting(broker, key, value, stored) for key, value in sorted(values.items()) if key in broker.settings]
    return BrokerModel(
        broker.broker_id,
        await visit.admin.brokers.version(),
        tuple(setting for setting in settings if _wanted(setting, origin, text)),
        origin,
        _ORIGINS,
        text,
        _writes(broker),
        (await visit.cache.get(("holdings",), lambda: _holdings(broker))).value,
        broker.disk.problem if broker.disk is not None else "",
    )


def _setting(broker: BrokerFacts, key: str, value: str, stored: dict[str, str]) -> Setting:
    item = broker.settings[key]
    problem = _problem(broker, key, stored[key]) if key in stored else ""
    origin_of_start = "default" if value == item.default else "start"
    origin = "dynamic" if key in stored and not problem else origin_of_start
    return Setting(key, value, item.default, origin, item.dynamic, item.help, problem)


def _problem(broker: BrokerFacts, key: str, value: str) -> str:
    """Return the reason why a stored value cannot be used; empty if it can."""
    problem = broker.setting_problem(key, value)
    return f"the stored value {value} is not in force: {problem}" if problem else ""


def _wanted(setting: Setting, origin: str, text: str) -> bool:
    if text and text.lower() not in f"{setting.key} {setting.value} {setting.help}".lower():
        return False
    if origin == "changed":
        return setting.origin != "default" or bool(setting.problem)
    return origin in ("", setting.origin)


def _writes(broker: BrokerFacts) -> Writes:
    entries, waited_ms, latest_waits_ms = broker.entries_written
    mean = waited_ms / entries if entries else None
    latest = sorted(latest_waits_ms)
    quantiles = {f"{share:g}": latest[min(int(share * len(latest)), len(latest) - 1)] for share in _QUANTILES if latest}
    return Writes(entries, mean, quantiles)


async def _holdings(broker: BrokerFacts) -> Holdings:
    """Count the loaded topics: no other topic has messages that wait for another cluster."""
    topics = size = 0
    async for topic in broker.loaded_topics():
        topics += 1
        size += topic.ledger_bytes
    pairs, waiting = await broker.replication_totals()
    return Holdings(topics, size, pairs, waiting, "on the bookies of the cluster" if broker.shared else "")
