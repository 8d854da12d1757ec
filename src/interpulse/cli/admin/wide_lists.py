"""Lists for ``-o wide``: the same rows, with the result of a few more requests about all of them, never one per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from interpulse.model.errors import InvalidTopicName
from interpulse.model.names import Domain, NamespaceName, TopicName
from interpulse.rules.bundles import bundle_of
from interpulse.terminal.output import print_wide

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_TOPICS: Final = ("topic", "partition", "partitions", "bundle")
_SUBSCRIPTIONS: Final = ("subscription", "type", "backlog", "unacked", "consumers", "out/s", "durable")


async def print_topics(
    admin: AdminClient, namespace: NamespaceName, names: Sequence[str], domains: Sequence[Domain]
) -> None:
    """Print topics with partition number, partition count and bundle.

    Apache Pulsar lists no counts.
    """
    boundaries = (await admin.namespaces.bundles(namespace))["boundaries"]
    counts = await admin.topics.partition_counts(namespace, domains=domains, system_included=True)
    print_wide(_TOPICS, [_topic(name, counts, boundaries) for name in names])


def _topic(text: str, counts: dict[str, int | None], boundaries: Sequence[str]) -> tuple[object, ...]:
    try:
        name = TopicName.parse(text)
    except InvalidTopicName:  # listed all the same
        return text, None, None, None
    base = str(name.base)
    index = name.partition_index if name.is_partition and base in counts else None
    return text, index, None if index is None else counts[base], bundle_of(name, boundaries)


async def print_partitioned_topics(admin: AdminClient, namespace: NamespaceName, *, system_included: bool) -> None:
    """Print partitioned topics with their partition counts, which Apache Pulsar does not list."""
    counts = await admin.topics.partition_counts(namespace, system_included=system_included)
    print_wide(("topic", "partitions"), counts.items())


async def print_subscriptions(admin: AdminClient, topic: TopicName, names: Sequence[str]) -> None:
    """Print subscriptions with their statistics, for all partitions together."""
    stats = await _stats(admin, topic)
    found = stats.get("subscriptions", {})
    print_wide(_SUBSCRIPTIONS, [_subscription(name, found.get(name, {})) for name in names])


async def _stats(admin: AdminClient, topic: TopicName) -> dict[str, Any]:
    if topic.is_partition or not (await admin.topics.partitioned_metadata(topic)).partitions:
        return await admin.topics.stats(topic, exclude_publishers=True)
    return await admin.topics.partitioned_stats(topic, per_partition=False, exclude_publishers=True)


def _subscription(name: str, found: dict[str, Any]) -> tuple[object, ...]:
    rate = found.get("msgRateOut")
    return (
        name,
        found.get("type"),
        found.get("msgBacklog"),
        found.get("unackedMessages"),
        len(found["consumers"]) if "consumers" in found else None,
        None if rate is None else round(rate, 1),
        found.get("durable", found.get("isDurable")),
    )


async def print_brokers(admin: AdminClient, names: Sequence[str]) -> None:
    """Print brokers, with a mark at the one that balances load."""
    leader = (await admin.brokers.leader()).get("brokerId")
    print_wide(("broker", "leader"), [(name, None if leader is None else name == leader) for name in names])
