"""Actions that repair the records of a topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from interpulse.console.actions.action import Action, AdminCall, Field
from interpulse.console.actions.fields import TOPIC, partitions_of, topic_of
from interpulse.console.web.addresses import page_url, topic_path

_PARTITIONS: Final = Field("partitions", "Partitions")


def _back(values: Mapping[str, str]) -> str:
    return page_url("doctor", namespace=topic_of(values).namespace_name)


CREATE_PARTITIONED: Final = Action(
    "create-partitioned-topic",
    "Create partitioned topic",
    "The topic gets partition metadata with this count; partitions that exist stay as they are.",
    (TOPIC, _PARTITIONS),
    call=lambda values: AdminCall("PUT", topic_path(topic_of(values), "/partitions"), partitions_of(values)),
    command=lambda values: ("topics", "create-partitioned-topic", values["topic"], "-p", values["partitions"]),
    back=_back,
    done="The partitioned topic was created.",
)

FORCE_COUNT: Final = Action(
    "force-partition-count",
    "Set partition count",
    "The partition metadata gets this count, which may not be below the present one. Missing partitions are created.",
    (TOPIC, _PARTITIONS),
    call=lambda values: AdminCall(
        "POST", topic_path(topic_of(values), "/partitions", force=True), partitions_of(values)
    ),
    command=lambda values: ("topics", "update-partitioned-topic", values["topic"], "-p", values["partitions"], "-f"),
    back=_back,
    done="The partition count was set.",
)

CREATE: Final = Action(
    "create-topic",
    "Create topic",
    "The topic gets its record; entries that exist stay as they are.",
    (TOPIC,),
    call=lambda values: AdminCall("PUT", topic_path(topic_of(values))),
    command=lambda values: ("topics", "create", values["topic"]),
    back=_back,
    done="The topic was created.",
)

DELETE: Final = Action(
    "delete-topic",
    "Delete topic",
    "The topic, or this partition, is deleted with its messages and subscriptions, even if clients use it.",
    (TOPIC,),
    call=lambda values: AdminCall("DELETE", topic_path(topic_of(values), force=True)),
    command=lambda values: ("topics", "delete", values["topic"], "-f"),
    back=_back,
    done="The topic was deleted.",
    dangerous=True,
)

DELETE_PARTITIONED: Final = Action(
    "delete-partitioned-topic",
    "Delete partitioned topic",
    "The topic is deleted with all its partitions, their messages and subscriptions, even if clients use it.",
    (TOPIC,),
    call=lambda values: AdminCall("DELETE", topic_path(topic_of(values), "/partitions", force=True)),
    command=lambda values: ("topics", "delete-partitioned-topic", values["topic"], "-f"),
    back=_back,
    done="The partitioned topic was deleted.",
    dangerous=True,
)

ACTIONS: Final = (CREATE_PARTITIONED, FORCE_COUNT, CREATE, DELETE, DELETE_PARTITIONED)
