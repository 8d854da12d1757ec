"""Policies that are set for all clusters of a topic, carried to one of them (topic-lifecycle 7.1).

Only brokers of ours are asked for them: real ones carry them themselves, with the topic that their policies stand in.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Collection, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final, NamedTuple, cast

from interpulse.client.admin import AdminClient
from interpulse.client.admin_policies import TOPIC_POLICIES, QuotaType
from interpulse.client.admin_topic_policies import TopicPoliciesAdmin
from interpulse.model.errors import NotSupported, PulsarError
from interpulse.model.names import TopicName
from interpulse.model.topic_policies import TopicPolicies
from interpulse.spark.state_files import write_atomically

__all__ = ["GlobalPolicies"]

log = logging.getLogger(__name__)

_PAUSE_S: Final = 30.0
_NOTHING_SET: Final = TopicPolicies()
_NAMES: Final = tuple(each.name for each in fields(TopicPolicies) if each.name in TOPIC_POLICIES)


class _Refusal(NamedTuple):
    problem: PulsarError
    retry_at: float


class GlobalPolicies:
    """What was carried is written down, so that what changed since is all that is set there, also after a restart.

    A policy that somebody set there stays until it changes here; where two clusters change the same, the last one wins.
    """

    def __init__(self, source: AdminClient, path: Path) -> None:
        self._source = source
        self._path = path
        self._carried = _load(path)
        self._refused: dict[TopicName, _Refusal] = {}
        self._offered = True

    async def carry(self, topics: Collection[TopicName], target: AdminClient) -> dict[TopicName, PulsarError]:
        """Set on the target what has changed here; the topics it was refused for, and why."""
        self._refused = {topic: refusal for topic, refusal in self._refused.items() if topic in topics}
        changed: dict[TopicName, TopicPolicies] = {}
        for topic, wanted in (await self._set_here(topics)).items():
            if wanted != self._carried.get(topic, _NOTHING_SET) and self._is_due(topic):
                try:
                    await _change(target, topic, self._carried.get(topic, _NOTHING_SET), wanted)
                except PulsarError as problem:
                    self._refused[topic] = _Refusal(problem, time.monotonic() + _PAUSE_S)
                else:
                    self._refused.pop(topic, None)
                    changed[topic] = wanted
        self._note(changed)
        return {topic: refusal.problem for topic, refusal in self._refused.items()}

    def forget(self, topic: TopicName) -> None:
        """The topic is new on the target: nothing is set there."""
        if topic in self._carried:
            self._note({topic: _NOTHING_SET})

    async def _set_here(self, topics: Collection[TopicName]) -> dict[TopicName, TopicPolicies]:
        """Without what cannot be asked now."""
        found: dict[TopicName, TopicPolicies] = {}
        for namespace in {topic.namespace_name for topic in topics} if self._offered else ():
            try:
                policies = await self._source.namespaces.global_topic_policies(namespace)
            except NotSupported:
                self._offered = False
            except PulsarError as problem:
                log.warning("policies for all clusters not read namespace=%s error=%s", namespace, problem)
            else:
                here = (topic for topic in topics if topic.namespace_name == namespace)
                found |= {topic: policies.get(str(topic), _NOTHING_SET) for topic in here}
        return found

    def _is_due(self, topic: TopicName) -> bool:
        return topic not in self._refused or self._refused[topic].retry_at <= time.monotonic()

    def _note(self, changed: Mapping[TopicName, TopicPolicies]) -> None:
        if changed:
            joined = {**self._carried, **changed}
            self._carried = {topic: policies for topic, policies in joined.items() if policies != _NOTHING_SET}
            body = {str(topic): policies.to_json() for topic, policies in self._carried.items()}
            write_atomically(self._path, json.dumps(body))


async def _change(target: AdminClient, topic: TopicName, before: TopicPolicies, after: TopicPolicies) -> None:
    """All that can be set is; raises the first refusal then."""
    refusals: list[PulsarError] = []
    for call in _calls(target.topic_policies, topic, before, after):
        try:
            await call
        except PulsarError as problem:
            refusals.append(problem)
    if refusals:
        raise refusals[0]


def _calls(
    admin: TopicPoliciesAdmin, topic: TopicName, before: TopicPolicies, after: TopicPolicies
) -> Iterator[Awaitable[None]]:
    for name in _NAMES:
        value = getattr(after, name)
        if value is not None and value != getattr(before, name):
            yield admin.set(topic, name, value, everywhere=True)
        elif value is None and getattr(before, name) is not None:
            yield admin.remove(topic, name, everywhere=True)
    quotas = after.backlog_quotas or {}
    for kind, quota in quotas.items():
        if quota != (before.backlog_quotas or {}).get(kind):
            yield admin.set_backlog_quota(topic, quota, cast("QuotaType", kind), everywhere=True)
    for kind in {*(before.backlog_quotas or {})} - {*quotas}:
        yield admin.remove_backlog_quota(topic, cast("QuotaType", kind), everywhere=True)


def _load(path: Path) -> dict[TopicName, TopicPolicies]:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return {TopicName.parse(name): TopicPolicies.from_json(policies) for name, policies in body.items()}
