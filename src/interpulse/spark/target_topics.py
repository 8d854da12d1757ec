"""What must hold on the target before the first entry of a topic is sent: it is there, and de-duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from interpulse.client.admin import AdminClient
from interpulse.client.session import Session
from interpulse.model.errors import AuthorizationError, InvalidRequest, NamespaceNotFound, NotFound
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.provision import TopicHeld

__all__ = ["check_deduplicating", "check_takes_entries", "ensure_deduplication", "is_deduplicating"]

_DEDUPLICATING: Final = (None, "enabled", "initialized", "recovering")


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


async def check_deduplicating(target: AdminClient, names: Sequence[str]) -> None:
    """The switch takes a moment to reach loaded topics; raises TopicHeld until the topics say that it did."""
    for name in names:
        try:
            status = await _deduplication_status(target, name)
        except NotFound:
            continue  # not loaded yet: it will read the policy when it is
        if status not in _DEDUPLICATING:
            raise TopicHeld(name, f"de-duplication of {name} is {status} yet", "it is looked at again by itself")


async def is_deduplicating(target: AdminClient, name: str) -> bool:
    """Whether a loaded topic-partition de-duplicates, by whichever policy."""
    return await _deduplication_status(target, name) in _DEDUPLICATING


async def _deduplication_status(target: AdminClient, name: str) -> str | None:
    """In small letters; None from a broker that does not say."""
    status = (await target.topics.stats(name)).get("deduplicationStatus")
    return None if status is None else str(status).lower()


async def check_takes_entries(session: Session, topic: str) -> None:
    """Producers create what is not there: entries go to a topic that is, and for a partitioned one to its partitions.

    (Those of a partition that is not there brokers refuse themselves.) Raises TopicNotFound or InvalidRequest.
    """
    name = TopicName.parse(topic)
    if not name.is_partition and await session.lookup.partitions(name, create=False):
        raise InvalidRequest(
            f"{topic} is partitioned: entries go to one of its partitions, such as {name.partition(0)}"
        )
