"""The page of this broker: settings with their origins, statistics of writes, and the data on its disk alone."""

from __future__ import annotations

from typing import Final

from interpulse.console.broker_facts import BrokerFacts
from interpulse.console.visit import Model, Visit

_ORIGINS: Final = ("", "changed", "dynamic", "start", "default")
_QUANTILES: Final = (0.5, 0.99, 1.0)


async def build(visit: Visit) -> Model:
    """Build the page. Raise AuthorizationError unless the visitor may administer brokers."""
    values = await visit.admin.brokers.runtime_configuration()
    stored = await visit.admin.brokers.dynamic_configuration()
    origin, text = visit.choice("origin", _ORIGINS), visit.text("text").strip()
    broker = visit.broker
    settings = [_setting(broker, key, value, stored) for key, value in sorted(values.items()) if key in broker.settings]
    return {
        "broker_id": broker.broker_id,
        "version": await visit.admin.brokers.version(),
        "settings": [setting for setting in settings if _is_wanted(setting, origin, text)],
        "origin": origin,
        "origins": _ORIGINS,
        "text": text,
        "writes": _writes(broker),
        "holdings": (await visit.cache.get(("holdings",), lambda: _holdings(broker))).value,  # None: being counted
        "disk_problem": broker.disk.problem if broker.disk is not None else "",
    }


def _setting(broker: BrokerFacts, key: str, value: str, stored: dict[str, str]) -> Model:
    """Return a setting as it is in force.

    Its origin is ``dynamic`` if it is set while brokers run, ``start`` if it is from file, environment or command line.
    """
    setting = broker.settings[key]
    problem = broker.setting_problem(key, stored[key]) if key in stored else ""
    origin_of_start = "default" if value == setting.default else "start"
    return {
        "key": key,
        "value": value,
        "default": setting.default,
        "origin": "dynamic" if key in stored and not problem else origin_of_start,
        "dynamic": setting.dynamic,
        "help": setting.help,
        "problem": f"the stored value {stored[key]} is not in force: {problem}" if problem else "",
    }


def _is_wanted(setting: Model, origin: str, text: str) -> bool:
    if text and text.lower() not in f"{setting['key']} {setting['value']} {setting['help']}".lower():
        return False
    if origin == "changed":
        return setting["origin"] != "default" or bool(setting["problem"])
    return origin in ("", setting["origin"])


def _writes(broker: BrokerFacts) -> Model:
    entries, waited_ms, latest_waits_ms = broker.entries_written
    latest = sorted(latest_waits_ms)
    quantiles = {f"{share:g}": latest[min(int(share * len(latest)), len(latest) - 1)] for share in _QUANTILES if latest}
    return {"entries": entries, "mean_wait_ms": waited_ms / entries if entries else None, "waits_ms": quantiles}


async def _holdings(broker: BrokerFacts) -> Model:
    """Return the data of this broker and where copies of it are.

    Counts the loaded topics: no other topic has messages that wait for another cluster.
    """
    topics = size = 0
    async for topic in broker.loaded_topics():
        topics += 1
        size += topic.ledger_bytes
    pairs, waiting = await broker.replication_totals()
    elsewhere = "on the bookies of the cluster" if broker.shared else ""
    return {"topics": topics, "bytes": size, "replicated": pairs, "not_copied": waiting, "elsewhere": elsewhere}
