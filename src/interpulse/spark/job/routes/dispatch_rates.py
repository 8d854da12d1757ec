"""``replicatorDispatchRate`` of the source: of the topic, else of the namespace, else of the broker."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection
from typing import Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import AuthorizationError, NotAllowed, NotFound, NotSupported, PulsarError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_records import DispatchRate
from interpulse.spark.reading.throttle import Rate

log = logging.getLogger(__name__)

_ASK_SINGLY_EVERY_S: Final = 10.0
_ASKED_AT_ONCE: Final = 16
_NO_LIMIT: Final = DispatchRate()


class DispatchRates:
    """Rates of the topics of a route. The last known value stays while one cannot be asked.

    Our broker answers for a whole namespace in one request. Apache Pulsar is asked topic by topic, less often; if it
    has no topic policies, for the namespace and, if permitted, for the broker.
    """

    def __init__(self, source: AdminClient) -> None:
        self._source = source
        self._known: dict[TopicName, DispatchRate] = {}
        self._asked_singly_at: dict[TopicName, float] = {}
        self._problem = ""

    async def refresh(self, topics: Collection[TopicName]) -> None:
        self._known = {topic: rate for topic, rate in self._known.items() if topic in topics}
        self._asked_singly_at = {topic: at for topic, at in self._asked_singly_at.items() if topic in topics}
        by_namespace: dict[NamespaceName, list[TopicName]] = {}
        for topic in topics:
            by_namespace.setdefault(topic.namespace_name, []).append(topic)
        problems = [await self._refresh(*item) for item in by_namespace.items()]
        problem = next(filter(None, problems), "")
        if problem and problem != self._problem:
            log.warning("replication rates not read, the last known ones stay error=%s", problem)
        self._problem = problem

    async def _refresh(self, namespace: NamespaceName, topics: list[TopicName]) -> str:
        try:
            default, own = await self._source.namespaces.replicator_dispatch_rates(namespace)
        except (NotSupported, NotFound):
            return await self._refresh_singly(topics)
        except PulsarError as problem:
            return str(problem)
        self._known |= {topic: own.get(str(topic), default) for topic in topics}
        return ""

    async def _refresh_singly(self, topics: list[TopicName]) -> str:
        now = time.monotonic()
        due = [
            topic for topic in topics if now - self._asked_singly_at.get(topic, float("-inf")) >= _ASK_SINGLY_EVERY_S
        ]
        slots = asyncio.Semaphore(_ASKED_AT_ONCE)

        async def ask(topic: TopicName) -> str:
            async with slots:
                try:
                    self._known[topic] = await self._of_topic(topic)
                except PulsarError as problem:
                    return str(problem)
            self._asked_singly_at[topic] = now
            return ""

        problems = await asyncio.gather(*map(ask, due))
        return next(filter(None, problems), "")

    async def _of_topic(self, topic: TopicName) -> DispatchRate:
        try:
            limit = await self._source.topic_policies.get(topic, "replicator_dispatch_rate", applied=True)
        except NotFound:
            return _NO_LIMIT
        except NotAllowed:  # policies of topics are switched off there
            limit = await self._of_namespace(topic.namespace_name)
        return _NO_LIMIT if limit is None else limit

    async def _of_namespace(self, namespace: NamespaceName) -> DispatchRate | None:
        limit: DispatchRate | None = await self._source.namespaces.policy(namespace, "replicator_dispatch_rate")
        if limit is not None:
            return limit
        try:
            runtime = await self._source.brokers.runtime_configuration()
        except AuthorizationError:
            return None
        messages, size = (runtime.get(f"dispatchThrottlingRatePerReplicatorIn{unit}", "0") for unit in ("Msg", "Byte"))
        return DispatchRate(int(messages), int(size))

    def of(self, topic: TopicName) -> Rate | None:
        """Return the rate of each partition of a topic, or None without a limit."""
        rate = self._known.get(topic, _NO_LIMIT)
        if not rate.limited:
            return None
        return Rate(rate.messages, rate.bytes, rate.period_seconds, rate.relative_to_publish_rate)
