"""Facts of the broker for pages of the console. Loaded with the first visit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from interpulse.broker.config.broker_config import BrokerConfig, settings_by_key
from interpulse.broker.live.registry.topic_tasks import AnyTopic, topics_in_turns
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.ownership.ownership import NO_OPTIONS
from interpulse.broker.replication.replication_status import STATES
from interpulse.broker.replication.replication_supervisor import ReplicationJobView
from interpulse.broker.rest.http.context import RestContext
from interpulse.broker.topics.topic_settings import broker_level
from interpulse.console.broker_facts import ConnectedProducer, DiskFacts, LoadedTopic, SettingFacts
from interpulse.model.adjustments import AdjustmentPlan
from interpulse.model.brokers import ListenerAddresses
from interpulse.model.names import Domain, NamespaceName, TopicName
from interpulse.model.permissions import Principal, TopicOperation
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies, TopicPolicyRecord
from interpulse.model.policies.policy_records import AutoTopicCreation
from interpulse.model.topics import Existence, SubscriptionMeasure, TopicMeasure
from interpulse.rules.lookup import LookupTarget
from interpulse.rules.topic_view import TopicView
from interpulse.serving.settings import ConfigError


@dataclass(frozen=True, slots=True)
class _Loaded:
    topic: AnyTopic

    @property
    def name(self) -> TopicName:
        return self.topic.name

    @property
    def ledger_bytes(self) -> int:
        return sum(ledger.size for ledger in self.topic.log.ledgers) if isinstance(self.topic, Topic) else 0

    def measure(self) -> tuple[TopicMeasure, Mapping[str, SubscriptionMeasure]]:
        measured = self.topic.measure()
        return measured.topic, measured.subscriptions

    def subscription_kind(self, subscription: str) -> str | None:
        live = self.topic.subscriptions.get(subscription)
        kind = live.sub_type if live is not None else None
        return kind.label if kind is not None else None

    def producers(self) -> Iterator[ConnectedProducer]:
        for producer in list(self.topic.producers.by_name.values()):
            request, rates = producer.request, producer.published
            yield ConnectedProducer(
                str(self.topic.name),
                producer.name,
                request.address or "",
                rates.message_rate,
                rates.byte_rate,
                request.remote_cluster or "",
            )


class ConsoleFacts:
    """The facts of this broker; see `BrokerFacts`."""

    def __init__(self, context: RestContext) -> None:
        self._context = context

    @property
    def broker_id(self) -> str:
        return self._context.this_broker.broker_id

    @property
    def shared(self) -> bool:
        return self._context.others is not None

    @property
    def roles_checked(self) -> bool:
        access = self._context.access
        return access is not None and access.authorization is not None

    async def tenants(self) -> Sequence[str]:
        return await self._context.tenants.list()

    async def namespaces(self, tenant: str) -> Sequence[str]:
        return await self._context.namespaces.list(tenant)

    def local_names(self, namespace: NamespaceName, domain: Domain) -> AsyncIterator[tuple[str, bool]]:
        return self._context.lifecycle.local_names(namespace, domain)

    async def view(self, topic: TopicName) -> TopicView:
        return await self._context.lifecycle.view(topic)

    async def existence(self, topic: TopicName) -> Existence:
        return await self._context.lifecycle.existence(topic)

    async def partitions(self, topic: TopicName) -> int:
        return await self._context.lifecycle.partitions(topic, create=False)

    async def check_role(self, role: str, operation: TopicOperation, topic: TopicName, subscription: str) -> None:
        access = self._context.access
        assert access is not None
        assert access.authorization is not None
        await access.authorization.check_topic(Principal(role), operation, topic, subscription or None)

    async def topic_policies(self, topic: TopicName) -> TopicPolicyRecord:
        return await self._context.topic_policies.record(topic)

    async def namespace_policies(self, namespace: NamespaceName) -> NamespacePolicies | None:
        return await self._context.namespaces.find_policies(namespace)

    @property
    def policies(self) -> TopicPolicies:
        return broker_level(self._context.dynamic.config)

    @property
    def auto_topic_creation(self) -> AutoTopicCreation:
        return self._context.dynamic.config.auto_topic_creation

    @property
    def settings(self) -> Mapping[str, SettingFacts]:
        return _settings()

    def setting_problem(self, key: str, value: str) -> str:
        try:
            BrokerConfig().changed({key: value})
        except (ConfigError, KeyError) as error:
            return str(error)
        return ""

    @property
    def connections(self) -> int:
        return self._context.instruments.connections().active

    @property
    def disk(self) -> DiskFacts | None:
        disk = self._context.instruments.disk_space
        return None if disk is None else DiskFacts(disk.free_bytes, disk.size_bytes, disk.problem or "")

    @property
    def entries_written(self) -> tuple[int, float, Sequence[float]]:
        meter = self._context.instruments.writes
        return meter.entries, meter.waited_ms, meter.latest_waits_ms

    async def loaded_topics(self) -> AsyncIterator[LoadedTopic]:
        async for topic in topics_in_turns(self._context.registry.topics()):
            yield _Loaded(topic)

    def loaded_topic(self, topic: TopicName) -> LoadedTopic | None:
        loaded = self._context.registry.get(topic)
        return None if loaded is None else _Loaded(loaded)

    async def brokers(self) -> Mapping[str, ListenerAddresses]:
        others = self._context.others
        if others is None:
            return {}
        reports = (await others.ownership.brokers.view()).reports
        return {broker_id: report.broker.addresses for broker_id, report in reports.items()}

    async def owner_elsewhere(self, topic: TopicName) -> LookupTarget | None:
        target = await self._context.lookups.find(topic, NO_OPTIONS)
        others = self._context.others
        return None if others is None or (target.broker_id or target.web_url) == others.own_id else target

    async def ask_owner(self, owner: LookupTarget, path: str) -> Any:
        others = self._context.others
        assert others is not None
        query = {"authoritative": owner.authoritative} if owner.redirect else {}
        return await others.ask(owner, "GET", path, kind="topic", query=query)

    @property
    def replication_job(self) -> ReplicationJobView:
        return self._context.replication_survey.job

    @property
    def replication_states(self) -> tuple[str, ...]:
        return STATES

    def replication_records(self, allowed: Callable[[NamespaceName], Awaitable[bool]]) -> AsyncIterator[dict[str, Any]]:
        return self._context.replication_survey.records(allowed)

    async def replication_totals(self) -> tuple[int, int]:
        survey = await self._context.replication_survey.look()
        return sum(survey.states.values()), sum(survey.lag_messages.values())

    async def preview_clusters(self, namespace: NamespaceName, clusters: Iterable[str]) -> AdjustmentPlan:
        return await self._context.replication_clusters.preview(namespace, clusters)


@cache
def _settings() -> Mapping[str, SettingFacts]:
    defaults = BrokerConfig().as_text()
    return {
        key: SettingFacts(defaults[key], setting.text, setting.dynamic) for key, setting in settings_by_key().items()
    }
