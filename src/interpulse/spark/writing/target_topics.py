"""Conditions of the target before the first row of a topic: the topic exists, and de-duplicates for exactly-once."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from interpulse.client.session import Session
from interpulse.model.errors import (
    AlreadyExists,
    AuthorizationError,
    InvalidRequest,
    NamespaceNotFound,
    NotFound,
    TopicNotFound,
)
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.provision import TopicHeld
from interpulse.spark.processes.process_client import patiently

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_DEDUPLICATING: Final = (None, "enabled", "initialized", "recovering")


async def ensure_deduplication(target: AdminClient, topic: TopicName, *, may_enable: bool) -> bool:
    """Enable de-duplication if permitted; exactly-once requires it. Return True if it was enabled just now.

    A namespace where it is disabled explicitly stays unchanged: raises TopicHeld.
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
    """Check that loaded topics de-duplicate, which takes a moment after enabling it. Raises TopicHeld until then."""
    for name in names:
        try:
            status = await _deduplication_status(target, name)
        except NotFound:
            continue  # not loaded: it reads the policy on loading
        if status not in _DEDUPLICATING:
            raise TopicHeld(name, f"de-duplication of {name} is {status} yet", "it is looked at again by itself")


async def is_deduplicating(target: AdminClient, name: str) -> bool:
    """Return True if a loaded topic-partition de-duplicates, by whichever policy."""
    return await _deduplication_status(target, name) in _DEDUPLICATING


async def _deduplication_status(target: AdminClient, name: str) -> str | None:
    """Return the status in lower case. Return None for a broker that does not report it."""
    status = (await target.topics.stats(name)).get("deduplicationStatus")
    return None if status is None else str(status).lower()


class TargetTopics:
    """Partition counts of the topics of a write. Topics may be created on demand.

    ``create`` is the option ``createTopics``; ``admin`` is needed if it is a number.
    """

    def __init__(self, session: Session, create: str | int = "false", admin: AdminClient | None = None) -> None:
        self._session = session
        self._create = create
        self._admin = admin
        self._counts: dict[str, int] = {}

    async def partitions(self, topic: str) -> int:
        """Return the partition count, 0 for a partition or an unpartitioned topic.

        Raises TopicNotFound, or why it cannot be created.
        """
        count = self._counts.get(topic)
        if count is None:
            name = TopicName.parse(topic)
            count = 0
            if not name.is_partition:
                count = await patiently(self._session, lambda: self._asked(name))
            self._counts[topic] = count
        return count

    async def _asked(self, name: TopicName) -> int:
        lookup = self._session.lookup
        try:
            return await lookup.partitions(name, create=self._create == "auto")
        except TopicNotFound:
            if self._create == "auto":
                raise TopicNotFound(
                    f"{name} does not exist, and producers cannot create it: {name.namespace_name} is missing "
                    f"or does not allow that. Create it, or set createTopics to a number of partitions and admin.url"
                ) from None
            if not isinstance(self._create, int):
                raise
        assert self._admin is not None, "parse_write_options has seen to it"
        topics, count = self._admin.topics, self._create
        with contextlib.suppress(AlreadyExists):  # another task may have created it
            await (topics.create_partitioned(name, count) if count else topics.create(name))
        return await lookup.partitions(name, create=False)


async def check_takes_entries(topics: TargetTopics, topic: str) -> None:
    """Check that entries are sent to an existing topic, and to the partitions of a partitioned one.

    Brokers refuse missing partitions themselves. Raises TopicNotFound or InvalidRequest.
    """
    if await topics.partitions(topic):
        partition = TopicName.parse(topic).partition(0)
        raise InvalidRequest(f"{topic} is partitioned: entries go to one of its partitions, such as {partition}")
