"""The console of a broker: its settings, its calls of the admin API, and the facts that pages ask for."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from interpulse.broker.config.broker_config import BrokerConfig, ConfigError, dynamic_keys, settings_by_key
from interpulse.broker.live.registry.topic_tasks import AnyTopic, topics_in_turns
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.ownership.ownership import NO_OPTIONS
from interpulse.broker.replication.replication_status import STATES
from interpulse.broker.replication.replication_supervisor import ReplicationJobView
from interpulse.broker.rest.http import routing
from interpulse.broker.rest.http.admin_calls import AdminCalls, SentCall, known_hosts
from interpulse.broker.rest.http.call import Answer
from interpulse.broker.rest.http.context import RestContext
from interpulse.broker.topics.topic_settings import broker_level
from interpulse.client.transport.http_errors import HttpAnswer
from interpulse.console.availability import MISSING_EXTRA, TURNED_OFF, Availability, extra_installed
from interpulse.console.broker_facts import (
    ConnectedProducer,
    DiskFacts,
    LoadedTopic,
    SettingFacts,
    SubscriptionCounts,
    TopicCounts,
)
from interpulse.console.front_end import ConsoleFrontEnd
from interpulse.console.host import Host, MethodNotAllowed, VisitorCall
from interpulse.model.adjustments import AdjustmentPlan
from interpulse.model.brokers import ListenerAddresses
from interpulse.model.names import Domain, NamespaceName, TopicName
from interpulse.model.permissions import Principal, TopicOperation
from interpulse.model.policies.namespace_policies import AutoTopicCreation, NamespacePolicies
from interpulse.model.policies.topic_policies import TopicPolicies, TopicPolicyRecord
from interpulse.model.topics import Existence
from interpulse.rules.lookup import LookupTarget
from interpulse.rules.topic_view import TopicView
from interpulse.serving.listening import is_loopback

__all__ = ["availability", "console_of_broker"]

_logger = logging.getLogger(__name__)

_PUBLIC: Final = (
    "the console is off: this broker listens for other machines and lets in callers without credentials; set "
    "authenticationEnabled=true and no anonymousUserRole, or consoleEnabled=true to show it to everybody"
)


def console_of_broker(context: RestContext, calls: AdminCalls) -> ConsoleFrontEnd:
    """Return the console of this broker, on or off by its settings."""
    dynamic = context.dynamic
    available = availability(dynamic.config, installed=extra_installed())
    if available.reason == MISSING_EXTRA and dynamic.config.console_enabled == "true":
        _logger.warning("no console reason=%s", MISSING_EXTRA)
    elif available.reason == MISSING_EXTRA:
        _logger.info("no console reason=%s", MISSING_EXTRA)
    host = Host(
        _BrokerApi(calls),
        context.namespaces.local_cluster,
        known_hosts(context),
        lambda: dynamic.config.console_read_only,
        lambda: dynamic.config.console_messages_enabled,
        context.access,
        _Facts(context),
        context.failed_authentications,
    )
    return ConsoleFrontEnd(host, available)


def availability(config: BrokerConfig, *, installed: bool) -> Availability:
    """Decide on the console by the settings; ``installed``: its extra is."""
    asks_everybody = config.authentication_enabled and not config.anonymous_user_role
    if config.console_enabled == "false":
        return Availability(False, TURNED_OFF)
    if config.console_enabled == "auto" and not (is_loopback(config.bind_address) or asks_everybody):
        return Availability(False, _PUBLIC)
    return Availability(True) if installed else Availability(False, MISSING_EXTRA)


class _BrokerApi:
    """Calls of the admin API that stay in the process, through the filter of all calls."""

    def __init__(self, calls: AdminCalls) -> None:
        self._calls = calls

    async def answer(self, call: VisitorCall) -> HttpAnswer:
        try:
            answer = await self._calls.answer(_sent(call))
        except routing.MethodNotAllowed as error:
            raise MethodNotAllowed(str(error)) from None
        content = answer.body if answer.parts is None else b"".join([part async for part in answer.parts])
        headers = _first_values(answer)
        text = content.decode(errors="replace")
        return HttpAnswer(answer.status, "", answer.content_type, headers.get("Location"), text, content, headers)

    async def check(self, call: VisitorCall) -> None:
        try:
            await self._calls.check(_sent(call))
        except routing.MethodNotAllowed as error:
            raise MethodNotAllowed(str(error)) from None


def _sent(call: VisitorCall) -> SentCall:
    async def read_body() -> bytes:
        return call.body or b""

    visitor = call.visitor
    return SentCall(
        call.method,
        call.target,
        visitor.headers,
        visitor.certificate,
        visitor.tls,
        call.content_type,
        read_body,
        visitor.address,
    )


def _first_values(answer: Answer) -> dict[str, str]:
    """Return the headers, of one that is repeated the first."""
    headers = answer.headers.items()
    first = {name: value if isinstance(value, str) else next(iter(value), None) for name, value in headers}
    return {name: value for name, value in first.items() if value is not None}


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A loaded topic, as pages ask it."""

    topic: AnyTopic

    @property
    def name(self) -> TopicName:
        return self.topic.name

    @property
    def ledger_bytes(self) -> int:
        return sum(ledger.size for ledger in self.topic.log.ledgers) if isinstance(self.topic, Topic) else 0

    def measure(self) -> tuple[TopicCounts, Mapping[str, SubscriptionCounts]]:
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


class _Facts:
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
    defaults, dynamic = BrokerConfig().as_text(), frozenset(dynamic_keys())
    return {
        key: SettingFacts(defaults[key], str(item.metadata["text"]), key in dynamic)
        for key, item in settings_by_key().items()
    }
