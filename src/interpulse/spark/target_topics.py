"""What must hold on the target before a topic's first entry is sent: it exists in the same shape, and de-duplicates."""

from __future__ import annotations

from collections.abc import Sequence

from interpulse.client.admin import AdminClient
from interpulse.model.errors import AuthorizationError, NamespaceNotFound, NotFound
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.topics import TopicKind
from interpulse.replication.provision import TopicHeld, TopicProvisioner, topic_shape

__all__ = ["check_deduplicating", "ensure_deduplication", "ensure_topic"]


async def ensure_deduplication(target: AdminClient, topic: TopicName, *, may_enable: bool) -> bool:
    """Without de-duplication on the target nothing is exactly once. True if it was switched on just now.

    A namespace where it is switched off on purpose is left alone: raises TopicHeld.
    """
    namespace = topic.namespace_name
    enabled = await _policy(target, namespace, topic)
    if enabled is None:
        enabled = await _broker_default(target)
        if not enabled and may_enable:
            await target.namespaces.set_deduplication(namespace, True)
            return True
    if enabled:
        return False
    raise TopicHeld(
        str(topic),
        f"de-duplication is off for {namespace} on the target cluster",
        f"switch it on there: namespaces set-deduplication {namespace} --enable",
    )


async def _policy(target: AdminClient, namespace: NamespaceName, topic: TopicName) -> bool | None:
    try:
        return await target.namespaces.deduplication(namespace)
    except NamespaceNotFound:
        raise TopicHeld(
            str(topic), f"namespace {namespace} does not exist on the target cluster", f"create {namespace} there"
        ) from None


async def _broker_default(target: AdminClient) -> bool:
    try:
        runtime = await target.brokers.runtime_configuration()
    except AuthorizationError:
        return False
    return runtime.get("brokerDeduplicationEnabled", "false").lower() == "true"


async def ensure_topic(
    source: AdminClient, target: AdminClient, topic: TopicName, *, may_create: bool, equal_before: int | None
) -> tuple[int, str | None]:
    """The partition count of both sides, and in words what had to be created. Raises TopicHeld."""
    absent = equal_before is None and (await _kind_on(target, topic)) is TopicKind.ABSENT
    provisioner = TopicProvisioner(source, target, creation_allowed=may_create)
    count = await provisioner.ensure_topic(topic, equal_before=equal_before)
    await provisioner.ensure_schemas(topic)
    shape = f"{count} partitions" if count else "no partitions"
    if absent:
        return count, f"{topic.local_name} created with {shape}: it was absent there"
    if equal_before is not None and equal_before != count:
        return count, f"{topic.local_name} expanded to {shape}: the source has grown"
    return count, None


async def _kind_on(target: AdminClient, topic: TopicName) -> TopicKind | None:
    try:
        return (await topic_shape(target, topic)).kind
    except NamespaceNotFound:
        return None  # ensure_topic says so, in words


async def check_deduplicating(target: AdminClient, names: Sequence[str]) -> None:
    """The switch takes a moment to reach loaded topics; raises TopicHeld until the topics say that it did."""
    for name in names:
        try:
            status = (await target.topics.stats(name)).get("deduplicationStatus")
        except NotFound:
            continue  # not loaded yet: it will read the policy when it is
        if status is not None and str(status).lower() not in ("enabled", "initialized", "recovering"):
            raise TopicHeld(name, f"de-duplication of {name} is {status} yet", "it is looked at again by itself")
