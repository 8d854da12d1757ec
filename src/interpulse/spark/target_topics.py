"""What must hold on the target before the first entry of a topic that is there is sent: it de-duplicates."""

from __future__ import annotations

from collections.abc import Sequence

from interpulse.client.admin import AdminClient
from interpulse.model.errors import AuthorizationError, NamespaceNotFound, NotFound
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.provision import TopicHeld

__all__ = ["check_deduplicating", "ensure_deduplication"]


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
            status = (await target.topics.stats(name)).get("deduplicationStatus")
        except NotFound:
            continue  # not loaded yet: it will read the policy when it is
        if status is not None and str(status).lower() not in ("enabled", "initialized", "recovering"):
            raise TopicHeld(name, f"de-duplication of {name} is {status} yet", "it is looked at again by itself")
