"""Actions on a subscription."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from interpulse.console.actions.action import Action, AdminCall, Field
from interpulse.console.actions.fields import AGES, SUBSCRIPTION, TOPIC, seconds_of, topic_of, whole
from interpulse.console.web.addresses import page_url, subscription_path
from interpulse.model.errors import InvalidRequest
from interpulse.model.ids import Position
from interpulse.model.numbers import INT_MAX

_TIME: Final = Field("time", "Time", choices=tuple(AGES))


def _path(values: Mapping[str, str], below: str = "", **query: str | int | bool) -> str:
    return subscription_path(topic_of(values), values["subscription"], below, **query)


def _on(values: Mapping[str, str], *rest: str) -> tuple[str, ...]:
    return values["topic"], "-s", values["subscription"], *rest


def _back(values: Mapping[str, str]) -> str:
    return page_url("subscription", name=values["topic"], subscription=values["subscription"])


def _position(values: Mapping[str, str]) -> Position:
    try:
        return Position.parse(values["position"])
    except ValueError:
        raise InvalidRequest(f"A position is ledger:entry, not {values['position'][:100]!r}") from None


def _reset_to_time(values: Mapping[str, str]) -> AdminCall:
    moment_ms = int((time.time() - seconds_of(values)) * 1000)
    return AdminCall("POST", _path(values, f"/resetcursor/{moment_ms}"))


def _reset_to_position(values: Mapping[str, str]) -> AdminCall:
    position = _position(values)
    body = {"ledgerId": position.ledger, "entryId": position.entry, "partitionIndex": -1, "batchIndex": -1}
    return AdminCall("POST", _path(values, "/resetcursor"), body | {"excluded": False})


SKIP: Final = Action(
    "skip-messages",
    "Skip messages",
    "The next messages of the subscription count as acknowledged: its consumers never get them.",
    (TOPIC, SUBSCRIPTION, Field("count", "Messages")),
    call=lambda values: AdminCall("POST", _path(values, f"/skip/{whole(values, 'count', most=INT_MAX)}")),
    command=lambda values: ("topics", "skip", *_on(values, "-n", values["count"])),
    back=_back,
    done="The messages were skipped.",
    dangerous=True,
)

SKIP_ALL: Final = Action(
    "skip-all-messages",
    "Skip the backlog",
    "Everything that was published until now counts as acknowledged: consumers of the subscription never get it.",
    (TOPIC, SUBSCRIPTION),
    call=lambda values: AdminCall("POST", _path(values, "/skip_all")),
    command=lambda values: ("topics", "skip-all", *_on(values)),
    back=_back,
    done="The backlog was skipped.",
    dangerous=True,
)

EXPIRE: Final = Action(
    "expire-messages",
    "Expire messages",
    "Messages published longer ago than this count as acknowledged: consumers of the subscription never get them.",
    (TOPIC, SUBSCRIPTION, _TIME),
    call=lambda values: AdminCall("POST", _path(values, f"/expireMessages/{seconds_of(values)}")),
    command=lambda values: ("topics", "expire-messages", *_on(values, "-t", values["time"])),
    back=_back,
    done="Older messages expire.",
    dangerous=True,
)

RESET_TO_TIME: Final = Action(
    "reset-to-time",
    "Go back in time",
    "The subscription continues with the messages published at that time: consumers get later messages again. They are "
    "disconnected, and reconnect by themselves.",
    (TOPIC, SUBSCRIPTION, _TIME),
    call=_reset_to_time,
    command=lambda values: ("topics", "reset-cursor", *_on(values, "-t", values["time"])),
    back=_back,
    done="The subscription went back.",
)

RESET_TO_POSITION: Final = Action(
    "reset-to-position",
    "Go to a position",
    "The subscription continues with this entry: consumers get later ones, even again, and earlier ones never. "
    "They are disconnected, and reconnect by themselves.",
    (TOPIC, SUBSCRIPTION, Field("position", "Position", hint="ledger:entry")),
    call=_reset_to_position,
    command=lambda values: ("topics", "reset-cursor", *_on(values, "-m", values["position"])),
    back=_back,
    done="The subscription continues from there.",
    dangerous=True,
)

UNSUBSCRIBE: Final = Action(
    "delete-subscription",
    "Delete subscription",
    "The subscription is deleted with its backlog; the messages stay as long as others need them. "
    "A subscription with consumers is refused.",
    (TOPIC, SUBSCRIPTION),
    call=lambda values: AdminCall("DELETE", _path(values)),
    command=lambda values: ("topics", "unsubscribe", *_on(values)),
    back=lambda values: page_url("topic", name=values["topic"]),
    done="The subscription was deleted.",
    dangerous=True,
)

ACTIONS: Final = (SKIP, SKIP_ALL, EXPIRE, RESET_TO_TIME, RESET_TO_POSITION, UNSUBSCRIBE)
