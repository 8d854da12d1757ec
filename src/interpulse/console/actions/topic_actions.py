"""Actions on a topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from interpulse.console.actions.action import Action, AdminCall, Field
from interpulse.console.actions.fields import TOPIC, partitions_of, topic_of
from interpulse.console.web.addresses import page_url, topic_path


def _back_to_topic(values: Mapping[str, str]) -> str:
    return page_url("topic", name=values["topic"])


UNLOAD: Final = Action(
    "unload-topic",
    "Unload topic",
    "The topic is closed in its broker; its clients are disconnected and reconnect by themselves. Nothing is lost.",
    (TOPIC,),
    call=lambda values: AdminCall("PUT", topic_path(topic_of(values), "/unload")),
    command=lambda values: ("topics", "unload", values["topic"]),
    back=_back_to_topic,
    done="The topic was unloaded. The next client loads it again.",
)

CREATE_MISSED_PARTITIONS: Final = Action(
    "create-missed-partitions",
    "Create missed partitions",
    "Partitions that the partition metadata promises and that are missing are created, empty. Nothing else changes.",
    (TOPIC,),
    call=lambda values: AdminCall("POST", topic_path(topic_of(values), "/createMissedPartitions")),
    command=lambda values: ("topics", "create-missed-partitions", values["topic"]),
    back=_back_to_topic,
    done="Every partition of the topic exists.",
)

EXPAND: Final = Action(
    "expand-topic",
    "Expand topic",
    "A partitioned topic gets more partitions, first on the clusters it is replicated to, then here. It never shrinks "
    "again, and keys may go to other partitions from then on.",
    (TOPIC, Field("partitions", "Partitions", hint="total number of partitions")),
    call=lambda values: AdminCall("POST", topic_path(topic_of(values), "/partitions"), partitions_of(values)),
    command=lambda values: ("topics", "update-partitioned-topic", values["topic"], "-p", values["partitions"]),
    back=_back_to_topic,
    done="The topic has more partitions. Producers and consumers take them up by themselves.",
)

ACTIONS: Final = (UNLOAD, CREATE_MISSED_PARTITIONS, EXPAND)
