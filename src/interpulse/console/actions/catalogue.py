"""Every action of the console."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from interpulse.console.actions.action import AGES, Action, Field, count_of
from interpulse.console.web.addresses import page_url
from interpulse.model.errors import InvalidRequest
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.model.operations import AdminRequest, Brokers, Namespaces, Schemas, Subscriptions, Topics

Values = Mapping[str, str]

TOPIC: Final = Field("topic", "Topic", hint="persistent://tenant/namespace/name")
SUBSCRIPTION: Final = Field("subscription", "Subscription")
PARTITIONS: Final = Field("partitions", "Partitions")
TIME: Final = Field("time", "Time", choices=tuple(AGES))


def _to_topic(values: Values) -> str:
    return page_url("topic", name=values["topic"])


def _to_subscription(values: Values) -> str:
    return page_url("subscription", name=values["topic"], subscription=values["subscription"])


def _to_doctor(values: Values) -> str:
    return page_url("doctor", namespace=TopicName.parse(values["topic"]).namespace_name)


def _to_settings(values: Values) -> str:
    return page_url("broker", text=values["key"])


def _on(values: Values, *rest: str) -> tuple[str, ...]:
    return values["topic"], "-s", values["subscription"], *rest


def _reset_to_time(values: Values) -> AdminRequest:
    moment_ms = int((time.time() - AGES[values["time"]]) * 1000)
    return Subscriptions.RESET_TO_TIME.request(values["topic"], values["subscription"], moment_ms)


def _reset_to_position(values: Values) -> AdminRequest:
    try:
        position = Position.parse(values["position"])
    except ValueError:
        raise InvalidRequest(f"A position is ledger:entry, not {values['position'][:100]!r}") from None
    place = {"ledgerId": position.ledger, "entryId": position.entry, "partitionIndex": -1, "batchIndex": -1}
    body = place | {"excluded": False}
    return Subscriptions.RESET_TO_MESSAGE.request(values["topic"], values["subscription"], body=body)


_ALL: Final = (
    Action(
        "unload-topic",
        "Unload topic",
        "The topic is closed in its broker; its clients are disconnected and reconnect by themselves. Nothing is lost.",
        (TOPIC,),
        call=lambda values: Topics.UNLOAD.request(values["topic"]),
        command=lambda values: ("topics", "unload", values["topic"]),
        back=_to_topic,
        done="The topic was unloaded. The next client loads it again.",
    ),
    Action(
        "create-missed-partitions",
        "Create missed partitions",
        "Partitions that the partition metadata promises and that are missing are created, empty. "
        "Nothing else changes.",
        (TOPIC,),
        call=lambda values: Topics.CREATE_MISSED_PARTITIONS.request(values["topic"]),
        command=lambda values: ("topics", "create-missed-partitions", values["topic"]),
        back=_to_topic,
        done="Every partition of the topic exists.",
    ),
    Action(
        "expand-topic",
        "Expand topic",
        "A partitioned topic gets more partitions, first on the clusters it is replicated to, then here. It never "
        "shrinks again, and keys may go to other partitions from then on.",
        (TOPIC, Field("partitions", "Partitions", hint="total number of partitions")),
        call=lambda values: Topics.EXPAND.request(values["topic"], body=count_of(values, "partitions")),
        command=lambda values: ("topics", "update-partitioned-topic", values["topic"], "-p", values["partitions"]),
        back=_to_topic,
        done="The topic has more partitions. Producers and consumers take them up by themselves.",
    ),
    Action(
        "skip-messages",
        "Skip messages",
        "The next messages of the subscription count as acknowledged: its consumers never get them.",
        (TOPIC, SUBSCRIPTION, Field("count", "Messages")),
        call=lambda values: Subscriptions.SKIP.request(
            values["topic"], values["subscription"], count_of(values, "count")
        ),
        command=lambda values: ("topics", "skip", *_on(values, "-n", values["count"])),
        back=_to_subscription,
        done="The messages were skipped.",
        dangerous=True,
    ),
    Action(
        "skip-all-messages",
        "Skip the backlog",
        "Everything that was published until now counts as acknowledged: consumers of the subscription never get it.",
        (TOPIC, SUBSCRIPTION),
        call=lambda values: Subscriptions.SKIP_ALL.request(values["topic"], values["subscription"]),
        command=lambda values: ("topics", "skip-all", *_on(values)),
        back=_to_subscription,
        done="The backlog was skipped.",
        dangerous=True,
    ),
    Action(
        "expire-messages",
        "Expire messages",
        "Messages published longer ago than this count as acknowledged: consumers of the subscription never get them.",
        (TOPIC, SUBSCRIPTION, TIME),
        call=lambda values: Subscriptions.EXPIRE.request(values["topic"], values["subscription"], AGES[values["time"]]),
        command=lambda values: ("topics", "expire-messages", *_on(values, "-t", values["time"])),
        back=_to_subscription,
        done="Older messages expire.",
        dangerous=True,
    ),
    Action(
        "reset-to-time",
        "Go back in time",
        "The subscription continues with the messages published at that time: consumers get later messages again. They "
        "are disconnected, and reconnect by themselves.",
        (TOPIC, SUBSCRIPTION, TIME),
        call=_reset_to_time,
        command=lambda values: ("topics", "reset-cursor", *_on(values, "-t", values["time"])),
        back=_to_subscription,
        done="The subscription went back.",
    ),
    Action(
        "reset-to-position",
        "Go to a position",
        "The subscription continues with this entry: consumers get later ones, even again, and earlier ones never. "
        "They are disconnected, and reconnect by themselves.",
        (TOPIC, SUBSCRIPTION, Field("position", "Position", hint="ledger:entry")),
        call=_reset_to_position,
        command=lambda values: ("topics", "reset-cursor", *_on(values, "-m", values["position"])),
        back=_to_subscription,
        done="The subscription continues from there.",
        dangerous=True,
    ),
    Action(
        "delete-subscription",
        "Delete subscription",
        "The subscription is deleted with its backlog; the messages stay as long as others need them. "
        "A subscription with consumers is refused.",
        (TOPIC, SUBSCRIPTION),
        call=lambda values: Subscriptions.DELETE.request(values["topic"], values["subscription"]),
        command=lambda values: ("topics", "unsubscribe", *_on(values)),
        back=_to_topic,
        done="The subscription was deleted.",
        dangerous=True,
    ),
    Action(
        "create-partitioned-topic",
        "Create partitioned topic",
        "The topic gets partition metadata with this count; partitions that exist stay as they are.",
        (TOPIC, PARTITIONS),
        call=lambda values: Topics.CREATE_PARTITIONED.request(values["topic"], body=count_of(values, "partitions")),
        command=lambda values: ("topics", "create-partitioned-topic", values["topic"], "-p", values["partitions"]),
        back=_to_doctor,
        done="The partitioned topic was created.",
    ),
    Action(
        "force-partition-count",
        "Set partition count",
        "The partition metadata gets this count, which may not be below the present one. "
        "Missing partitions are created.",
        (TOPIC, PARTITIONS),
        call=lambda values: Topics.EXPAND.request(values["topic"], body=count_of(values, "partitions"), force=True),
        command=lambda values: (
            "topics",
            "update-partitioned-topic",
            values["topic"],
            "-p",
            values["partitions"],
            "-f",
        ),
        back=_to_doctor,
        done="The partition count was set.",
    ),
    Action(
        "create-topic",
        "Create topic",
        "The topic gets its record; entries that exist stay as they are.",
        (TOPIC,),
        call=lambda values: Topics.CREATE.request(values["topic"]),
        command=lambda values: ("topics", "create", values["topic"]),
        back=_to_doctor,
        done="The topic was created.",
    ),
    Action(
        "delete-topic",
        "Delete topic",
        "The topic, or this partition, is deleted with its messages and subscriptions, even if clients use it.",
        (TOPIC,),
        call=lambda values: Topics.DELETE.request(values["topic"], force=True),
        command=lambda values: ("topics", "delete", values["topic"], "-f"),
        back=_to_doctor,
        done="The topic was deleted.",
        dangerous=True,
    ),
    Action(
        "delete-partitioned-topic",
        "Delete partitioned topic",
        "The topic is deleted with all its partitions, their messages and subscriptions, even if clients use it.",
        (TOPIC,),
        call=lambda values: Topics.DELETE_PARTITIONED.request(values["topic"], force=True),
        command=lambda values: ("topics", "delete-partitioned-topic", values["topic"], "-f"),
        back=_to_doctor,
        done="The partitioned topic was deleted.",
        dangerous=True,
    ),
    Action(
        "adjust-replication",
        "Adjust the clusters, and replicate",
        "Exactly the changes of this plan are made on the other clusters, then the namespace is replicated to them. If "
        "anything differs from the plan that was shown, nothing is changed.",
        (
            Field("namespace", "Namespace"),
            Field("clusters", "Clusters"),
            Field("digest", "Digest of the plan", hint="see the page of differences"),
        ),
        call=lambda values: Namespaces.SET_CLUSTERS.request(
            values["namespace"],
            body=[name for name in values["clusters"].split(",") if name],
            adjustNamespaceLevelPoliciesAutomatically=True,
            planDigest=values["digest"],
        ),
        command=lambda values: (
            *("namespaces", "set-clusters", values["namespace"], "-c", values["clusters"]),
            *("--adjust-namespace-level-policies-automatically", "--plan-digest", values["digest"]),
        ),
        back=lambda values: page_url("replication"),
        ours_only=True,
        done="The plan was applied, and the namespace is replicated.",
    ),
    Action(
        "delete-schema",
        "Delete schema",
        "The topic has no schema from now on; its versions stay for messages that were published with them.",
        (TOPIC,),
        call=lambda values: Schemas.DELETE.request(values["topic"]),
        command=lambda values: ("schemas", "delete", values["topic"]),
        back=lambda values: page_url("schemas", name=values["topic"]),
        done="The schema was deleted.",
        dangerous=True,
    ),
    Action(
        "update-dynamic-config",
        "Change setting",
        "All brokers of the cluster apply it immediately, and after a restart.",
        (Field("key", "Setting"), Field("value", "Value")),
        call=lambda values: Brokers.SET_DYNAMIC.request(values["key"], values["value"]),
        command=lambda values: (
            *("brokers", "update-dynamic-config", "--config", values["key"]),
            *("--value", values["value"]),
        ),
        back=_to_settings,
        done="The setting was changed.",
    ),
    Action(
        "delete-dynamic-config",
        "Restore the value of the start",
        "The dynamic value is removed; each broker uses the value of its start again.",
        (Field("key", "Setting"),),
        call=lambda values: Brokers.DELETE_DYNAMIC.request(values["key"]),
        command=lambda values: ("brokers", "delete-dynamic-config", "--config", values["key"]),
        back=_to_settings,
        done="The setting has its value of the start again.",
    ),
)
ACTIONS: Final[dict[str, Action]] = {action.name: action for action in _ALL}
