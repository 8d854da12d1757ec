"""Connected clients that need attention when they are sent to the other site. Pure: from the stats of topics.

Official clients of the C++ family 4.2, among them the Python client 3.13, end with an abort on TOPIC_MIGRATED if their
log goes to Python or is at the level debug. Consumers that acknowledge cumulatively, and readers, compare positions of
the new site with those of the old one, and see nothing until they are made again (apache/pulsar#25291).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from interpulse.model.names import TopicName

_OURS: Final = "interpulse"
_ABORTING: Final = "Pulsar-CPP-v4.2"
_CUMULATIVE: Final = ("Exclusive", "Failover")


def warnings_of_clients(stats: Mapping[TopicName, Mapping[str, Any]]) -> list[str]:
    """Return one sentence for each client address and kind of trouble."""
    warnings: dict[str, None] = {}
    for shown in stats.values():
        warnings |= dict.fromkeys(_of_topic(shown))
    return sorted(warnings)


def _of_topic(shown: Mapping[str, Any]) -> Iterator[str]:
    for publisher in shown.get("publishers", ()):
        if publisher.get("clientVersion", "").startswith(_ABORTING):
            yield _abort(publisher)
    for name, subscription in shown.get("subscriptions", {}).items():
        for consumer in subscription.get("consumers", ()):
            version = consumer.get("clientVersion", "")
            if version.startswith(_ABORTING):
                yield _abort(consumer)
            if not version.lower().startswith(_OURS):
                yield from _restart(name, subscription, consumer)


def _restart(name: str, subscription: Mapping[str, Any], consumer: Mapping[str, Any]) -> Iterator[str]:
    program = f"Restart the program at {_host(consumer)} after the switch"
    shown = f"sees nothing otherwise ({consumer.get('clientVersion') or 'unknown client'})"
    if not subscription.get("isDurable", True):
        yield f"{program}: its reader {shown}"
    elif subscription.get("type") in _CUMULATIVE:
        yield f"{program} if it acknowledges cumulatively: its consumer of {name} {shown}"


def _abort(client: Mapping[str, Any]) -> str:
    return (
        f"The client at {_host(client)} ({client['clientVersion']}) aborts when it is redirected, if it logs to Python "
        "or at debug level: let it log to the console at info level, or stop it before the switch"
    )


def _host(client: Mapping[str, Any]) -> str:
    return str(client.get("address", "an unknown address")).lstrip("/").rpartition(":")[0] or "an unknown address"
