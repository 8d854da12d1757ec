"""This broker: its settings and where each comes from, how it writes, and what losing its disk would cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from interpulse.broker.config.broker_config import BrokerConfig, ConfigError, dynamic_keys, settings_by_key
from interpulse.broker.console.visit import Visit
from interpulse.broker.live.registry.topic_tasks import topics_in_turns
from interpulse.broker.live.topic.topic import Topic

__all__ = ["BrokerModel", "build"]

_ORIGINS: Final = ("", "changed", "dynamic", "start", "default")
_QUANTILES: Final = (0.5, 0.99, 1.0)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as it is in force."""

    key: str
    value: str
    default: str
    origin: str
    """``dynamic``: set while brokers run; ``start``: by file, environment or command line; else ``default``."""

    dynamic: bool
    """It may be changed here."""

    help: str
    problem: str = ""
    """Why a stored dynamic value is not in force."""


@dataclass(frozen=True, slots=True)
class Writes:
    """The log of this broker since it started."""

    entries: int
    mean_wait_ms: float | None
    waits_ms: dict[str, float]
    """Of the latest groups of entries that became durable together."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """What is on this broker's disk alone, and what the visitor may know of it."""

    topics: int
    bytes: int
    replicated: int
    """Pairs of a topic and another cluster."""

    not_copied: int
    """Messages that wait for one."""

    elsewhere: str
    """Where entries are besides; empty: only here."""


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
    """None: it is being found out."""

    disk_problem: str


async def build(visit: Visit) -> BrokerModel:
    """Raises AuthorizationError for those who may not administer brokers."""
    values = await visit.admin.brokers.runtime_configuration()
    stored = await visit.admin.brokers.dynamic_configuration()
    origin, text = visit.choice("origin", _ORIGINS), visit.text("text").strip()
    found = [_setting(key, value, stored) for key, value in sorted(values.items()) if key in settings_by_key()]
    instruments = visit.broker.instruments
    disk = instruments.disk_space
    return BrokerModel(
        visit.broker.this_broker.broker_id,
        await visit.admin.brokers.version(),
        tuple(each for each in found if _wanted(each, origin, text)),
        origin,
        _ORIGINS,
        text,
        _writes(visit),
        (await visit.kept.get(("holdings",), lambda: _holdings(visit))).value,
        (disk.problem or "") if disk is not None else "",
    )


def _setting(key: str, value: str, stored: dict[str, str]) -> Setting:
    item, default = settings_by_key()[key], _DEFAULTS[key]
    problem = _problem(key, stored[key]) if key in stored else ""
    origin_of_start = "default" if value == default else "start"
    origin = "dynamic" if key in stored and not problem else origin_of_start
    return Setting(key, value, default, origin, key in _DYNAMIC, str(item.metadata["text"]), problem)


def _problem(key: str, value: str) -> str:
    """Why a value that is stored cannot be used; empty if it can."""
    try:
        BrokerConfig().changed({key: value})
    except (ConfigError, KeyError) as error:
        return f"the stored value {value} is not in force: {error}"
    return ""


def _wanted(setting: Setting, origin: str, text: str) -> bool:
    if text and text.lower() not in f"{setting.key} {setting.value} {setting.help}".lower():
        return False
    if origin == "changed":
        return setting.origin != "default" or bool(setting.problem)
    return origin in ("", setting.origin)


def _writes(visit: Visit) -> Writes:
    meter = visit.broker.instruments.writes
    mean = meter.waited_ms / meter.entries if meter.entries else None
    latest = sorted(meter.latest_waits_ms)
    quantiles = {f"{share:g}": latest[min(int(share * len(latest)), len(latest) - 1)] for share in _QUANTILES if latest}
    return Writes(meter.entries, mean, quantiles)


async def _holdings(visit: Visit) -> Holdings:
    """Of the topics that are loaded: the others have nothing that waits for another cluster."""
    topics = size = 0
    async for topic in topics_in_turns(visit.broker.registry.topics()):
        topics += 1
        if isinstance(topic, Topic):
            size += sum(ledger.size for ledger in topic.log.ledgers)
    survey = await visit.broker.replication_survey.look()
    elsewhere = "on the bookies of the cluster" if visit.broker.dynamic.config.metadata_store_url else ""
    return Holdings(topics, size, sum(survey.states.values()), sum(survey.lag_messages.values()), elsewhere)


_DYNAMIC: Final = frozenset(dynamic_keys())
_DEFAULTS: Final = BrokerConfig().as_text()
