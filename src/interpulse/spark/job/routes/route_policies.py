"""Policies of the source that a route follows: ``replicatorDispatchRate``, and policies for all clusters.

The rate is that of the topic, else of the namespace, else of the broker. Policies for all clusters are carried to the
target. Only our brokers are asked for them: Apache Pulsar carries them itself, in the topic that stores policies.
Source: docs/reference/topic-lifecycle.md#policies-for-all-clusters.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.admin.topic_policies import TopicPoliciesAdmin
from interpulse.in_turns import concurrently
from interpulse.model.errors import AuthorizationError, NotAllowed, NotFound, NotSupported, PulsarError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.catalogue import TOPIC_CALLS
from interpulse.model.policies.policy_documents import TopicPolicies
from interpulse.model.policies.policy_records import DispatchRate, QuotaType
from interpulse.spark.reading.throttle import Rate
from interpulse.spark.state_disk import write_atomically

log = logging.getLogger(__name__)

_ASK_SINGLY_EVERY_S: Final = 10.0
_NO_LIMIT: Final = DispatchRate()


class DispatchRates:
    """Rates of the topics of a route. The last known value stays while one cannot be asked.

    Our broker answers for a whole namespace in one request. Apache Pulsar is asked topic by topic, less often; if it
    has no topic policies, for the namespace and, if permitted, for the broker.
    """

    def __init__(self, source: AdminClient) -> None:
        self._source = source
        self._rates: dict[TopicName, DispatchRate] = {}
        self._asked_singly_at: dict[TopicName, float] = {}
        self._problem = ""

    @property
    def has_failed(self) -> bool:
        """True if rates could not be read at the last call."""
        return bool(self._problem)

    async def refresh(self, topics: Collection[TopicName]) -> None:
        """Read the rates of these topics."""
        self._rates = {topic: rate for topic, rate in self._rates.items() if topic in topics}
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
        self._rates |= {topic: own.get(str(topic), default) for topic in topics}
        return ""

    async def _refresh_singly(self, topics: list[TopicName]) -> str:
        now = time.monotonic()

        async def ask(topic: TopicName) -> str:
            try:
                self._rates[topic] = await self._of_topic(topic)
            except PulsarError as problem:
                return str(problem)
            self._asked_singly_at[topic] = now
            return ""

        due = (topic for topic in topics if now - self._asked_singly_at.get(topic, -inf) >= _ASK_SINGLY_EVERY_S)
        return next(filter(None, await concurrently(ask, due)), "")

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
        rate = self._rates.get(topic, _NO_LIMIT)
        if not rate.limited:
            return None
        return Rate(rate.messages, rate.bytes, rate.period_seconds, rate.relative_to_publish_rate)


_PAUSE_S: Final = 30.0
_QUOTAS: Final = "backlog_quotas"
_NOT_CARRIED: Final = "deduplication_enabled"
"""De-duplication is the target's own decision, since nothing arrives exactly once without it."""

_NAMES: Final = [
    field.name for field in fields(TopicPolicies) if field.name in TOPIC_CALLS and field.name != _NOT_CARRIED
]


class _Part(NamedTuple):
    name: str
    kind: str = ""


Parts = Mapping[_Part, Any]
"""Policies that are set, by part."""


class GlobalPolicies:
    """Carrier of global policies. It records what it carried, so that it sets changes only, also after a restart.

    A policy set on the target stays until it changes on the source. If both sides changed the same policy, the job of
    the other direction may only be late, so the target's value stays at first; after ``patience_s`` the source's value
    wins. The two directions need different values of ``patience_s``, or they would swap their policies.
    """

    def __init__(self, source: AdminClient, path: Path, *, patience_s: float) -> None:
        self._source = source
        self._path = path
        self._patience_s = patience_s
        self._carried = _load(path)
        self._refused: dict[TopicName, tuple[PulsarError, float]] = {}
        """Refused topics with the reason, and the time of the next attempt."""
        self._contested: dict[tuple[TopicName, _Part], float] = {}
        self._offered = True
        self._has_failed = False

    @property
    def must_repeat(self) -> bool:
        """True if something was left to carry at the last call."""
        return self._has_failed or bool(self._refused or self._contested)

    async def carry(
        self, namespaces: Collection[NamespaceName], target: AdminClient, *, held: Collection[TopicName]
    ) -> dict[TopicName, PulsarError]:
        """Set on the target what changed here. Return the topics whose policies were refused, with the reasons.

        Topics that are not replicated are included, since that may be the policy to carry. Topics in ``held`` wait.
        """
        before, self._has_failed = dict(self._carried), False
        for namespace in namespaces if self._offered else ():
            try:
                await self._carry(namespace, target, held)
            except NotSupported:
                self._offered = False
            except PulsarError as problem:
                self._has_failed = True
                log.warning("policies for all clusters not carried namespace=%s error=%s", namespace, problem)
        if self._carried != before:
            self._store()
        return {topic: problem for topic, (problem, _) in self._refused.items()}

    def forget(self, topics: Iterable[TopicName]) -> None:
        """Forget topics that are gone here or new on the target."""
        gone = self._carried.keys() & set(topics)
        for topic in gone:
            del self._carried[topic]
        if gone:
            self._store()

    async def _carry(self, namespace: NamespaceName, target: AdminClient, held: Collection[TopicName]) -> None:
        wanted = _by_topic(await self._source.namespaces.global_topic_policies(namespace))
        topics = {*wanted, *(topic for topic in self._carried if topic.namespace_name == namespace)}
        if not topics:
            return
        try:
            existing = _by_topic(await target.namespaces.global_topic_policies(namespace))
            there = {topic: existing.get(topic, {}) for topic in topics}
        except NotSupported:  # taken to be as it was left
            there = {}
        for topic in topics - {*held}:
            if topic not in self._refused or self._refused[topic][1] <= time.monotonic():
                await self._carry_topic(topic, wanted.get(topic, {}), there.get(topic), target)

    async def _carry_topic(self, topic: TopicName, wanted: Parts, there: Parts | None, target: AdminClient) -> None:
        carried = dict(self._carried.get(topic, {}))
        self._refused.pop(topic, None)
        for part in sorted({*wanted, *carried}):
            value = wanted.get(part)
            if value == carried.get(part):
                self._contested.pop((topic, part), None)
                continue
            present = carried.get(part) if there is None else there.get(part)
            if present not in (value, carried.get(part)) and self._must_wait(topic, part):
                continue
            try:
                if present != value:
                    await _set(target.topic_policies, topic, part, value)
            except PulsarError as problem:
                self._refused.setdefault(topic, (problem, time.monotonic() + _PAUSE_S))
                continue
            self._contested.pop((topic, part), None)
            carried[part] = value
        self._carried.pop(topic, None)
        if set_parts := {part: value for part, value in carried.items() if value is not None}:
            self._carried[topic] = set_parts

    def _must_wait(self, topic: TopicName, part: _Part) -> bool:
        now = time.monotonic()
        return now - self._contested.setdefault((topic, part), now) < self._patience_s

    def _store(self) -> None:
        body = {str(topic): _policies(parts).to_json() for topic, parts in self._carried.items()}
        write_atomically(self._path, json.dumps(body))


async def _set(admin: TopicPoliciesAdmin, topic: TopicName, part: _Part, value: Any) -> None:
    """Set a part, or remove it if ``value`` is None."""
    kind = cast("QuotaType", part.kind)
    if part.name == _QUOTAS and value is None:
        await admin.remove_backlog_quota(topic, kind, everywhere=True)
    elif part.name == _QUOTAS:
        await admin.set_backlog_quota(topic, value, kind, everywhere=True)
    elif value is None:
        await admin.remove(topic, part.name, everywhere=True)
    else:
        await admin.set(topic, part.name, value, everywhere=True)


def _by_topic(by_name: Mapping[str, TopicPolicies]) -> dict[TopicName, Parts]:
    return {TopicName.parse(name): dict(_parts(policies)) for name, policies in by_name.items()}


def _parts(policies: TopicPolicies) -> Iterator[tuple[_Part, Any]]:
    for name in _NAMES:
        if getattr(policies, name) is not None:
            yield _Part(name), getattr(policies, name)
    for kind, quota in (policies.backlog_quotas or {}).items():
        yield _Part(_QUOTAS, kind), quota


def _policies(parts: Parts) -> TopicPolicies:
    quotas = {part.kind: quota for part, quota in parts.items() if part.name == _QUOTAS}
    values = {part.name: value for part, value in parts.items() if part.name != _QUOTAS}
    return TopicPolicies(**values, backlog_quotas=quotas or None)


def _load(path: Path) -> dict[TopicName, Parts]:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return _by_topic({name: TopicPolicies.from_json(policies) for name, policies in body.items()})
