"""The role of the namespace at one topic: it admits clients, and closes or redirects those that it no longer serves.

The role is looked at when a client opens a producer or a consumer and when policies change, never for a message. A new
role is in force before the first wait, so no client slips in. Local producers then stop, the entries that they have
sent become durable and get their receipts, and only then the producers are closed: their clients send nothing twice.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from interpulse.broker.live.api import ProducerRequest, SubscribeRequest, TopicHost, TopicSettings
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.producing.producer_set import ProducerSet
from interpulse.broker.live.topic.topic_clients import TopicClients
from interpulse.clock import iso_time
from interpulse.model.errors import PersistenceError, PulsarError, ServiceNotReady, TopicMoved
from interpulse.model.names import TopicName
from interpulse.rules.failover_role import Role, Treatment, is_lane, is_lane_from
from interpulse.rules.replication import sending_cluster

log = logging.getLogger(__name__)

_RECHECK_MS: Final = 1000
"""Time between two looks at the backlog of consumers that are redirected once they have drained it."""


class GatedSubscription(Protocol):
    """The interface of a subscription for the gate."""

    name: str

    @property
    def consumers(self) -> Sequence[Consumer]: ...

    replicate_state: bool
    """True if the acknowledgements are exchanged with other clusters."""

    @property
    def drained(self) -> bool:
        """True if the subscription has no backlog."""

    async def store_acknowledgements(self) -> None:
        """Store the acknowledgements; durable on return."""


class GatedTopic(Protocol):
    """The interface of a topic for the gate."""

    name: TopicName
    clients: TopicClients
    producers: ProducerSet
    settings: TopicSettings

    @property
    def subscriptions(self) -> Mapping[str, GatedSubscription]: ...

    async def settle(self) -> None:
        """Wait until everything that was published so far has its answer."""


class FailoverGate:
    """The admission of clients to one topic by the role of its namespace."""

    __slots__ = ("_host", "_rechecking", "_topic", "closed_producers", "role")

    def __init__(self, topic: GatedTopic, host: TopicHost) -> None:
        self.role = topic.settings.role
        self.closed_producers = 0
        """Local producers that this role has closed."""
        self._topic = topic
        self._host = host
        self._rechecking = False

    def check_producer(self, request: ProducerRequest) -> None:
        """Raise ServiceNotReady or TopicMoved for a producer that the role does not serve."""
        if self._is_closed_to(request):
            raise ServiceNotReady(f"{self.role.about(self._topic.name)}: copies from {self.role.closed_to} are refused")
        treatment = self.role.serving.producers
        if treatment is not Treatment.SERVED and _is_local(request):
            raise self._refusal(treatment)

    def check_consumer(self, request: SubscribeRequest) -> None:
        """Raise ServiceNotReady or TopicMoved for a consumer that the role does not serve.

        Where consumers are redirected, one whose subscription has a backlog is served until it is drained.
        """
        treatment = self._consumers()
        subscription = self._topic.subscriptions.get(request.subscription)
        if self._is_held(request, subscription):
            raise ServiceNotReady(
                f"{self.role.about(self._topic.name)}: consumers of {request.subscription} are served from "
                f"{self.role.consumers_from} on, when the acknowledgements of the other site are here"
            )
        if treatment is Treatment.SERVED or self._is_exempt(request):
            return
        if treatment is Treatment.REFUSED or subscription is None or self._may_go(subscription):
            raise self._refusal(treatment)

    def admitted(self, consumer: Consumer) -> Consumer:
        """Return a new consumer. Close it and raise as `check_consumer` if the role changed while it was opened."""
        try:
            self.check_consumer(consumer.request)
        except ServiceNotReady:
            consumer.close()
            raise
        if self._consumers() is Treatment.REDIRECTED:
            self._recheck_later()
        return consumer

    async def use(self, settings: TopicSettings) -> None:
        """Apply the role of new settings; on return the clients that it does not serve are closed."""
        if settings.role != self.role:
            self.role, self.closed_producers = settings.role, 0
        self._close_held_consumers()
        if self.role.serving.producers is not Treatment.SERVED or self.role.closed_to:
            await self._close_producers()
        treatment = self._consumers()
        if treatment is Treatment.REDIRECTED:
            await self._redirect_consumers()
        elif treatment is Treatment.REFUSED:
            for consumer in self._local_consumers():
                consumer.close_by_broker()

    def _close_held_consumers(self) -> None:
        for subscription in list(self._topic.subscriptions.values()):
            for consumer in list(subscription.consumers):
                if self._is_held(consumer.request, subscription):
                    consumer.close_by_broker()

    async def _close_producers(self) -> None:
        role = self.role
        leaving = self._topic.producers.leave_some(self._leaves)
        if leaving and not await self._settled():
            return
        for producer in leaving:
            is_local = _is_local(producer.request)
            self.closed_producers += is_local and not producer.closed
            if is_local and role.role is Role.MOVED:
                producer.redirect(role)
            else:
                producer.close_by_broker()

    def _leaves(self, request: ProducerRequest) -> bool:
        is_refused = self.role.serving.producers is not Treatment.SERVED and _is_local(request)
        return is_refused or self._is_closed_to(request)

    def _is_closed_to(self, request: ProducerRequest) -> bool:
        """Return True for a lane or a replicator of the cluster whose copies are refused."""
        cluster = self.role.closed_to
        return bool(cluster) and (request.remote_cluster == cluster or is_lane_from(request.name or "", cluster))

    async def _settled(self) -> bool:
        """Wait for the answers of all publishes. Return False if the topic is being closed, with its clients."""
        try:
            await self._topic.settle()
        except PersistenceError:
            if self._topic.clients.refusal is None:
                raise
            return False
        return True

    async def _redirect_consumers(self) -> None:
        try:
            for subscription in list(self._topic.subscriptions.values()):
                await self._redirect_drained(subscription)
        finally:
            self._recheck_later()

    async def _redirect_drained(self, subscription: GatedSubscription) -> None:
        role, consumers = self.role, self._local_consumers_of(subscription)
        if consumers and self._may_go(subscription):
            await subscription.store_acknowledgements()
            if role == self.role:
                for consumer in consumers:
                    consumer.redirect(role)

    def _recheck_later(self) -> None:
        """Look again in a while if consumers are left that have not drained their backlog."""
        if not self._rechecking and self._local_consumers():
            self._rechecking = True
            self._host.call_later(_RECHECK_MS, self._recheck)

    def _recheck(self) -> None:
        self._rechecking = False
        try:
            is_open = self._topic.clients.refusal is None
        except ReferenceError:  # the topic was closed within the pause, and is gone
            return
        if is_open and self._consumers() is Treatment.REDIRECTED:
            self._host.spawn(self._redirect_again())

    async def _redirect_again(self) -> None:
        try:
            await self._redirect_consumers()
        except PulsarError as error:
            log.warning("consumers not redirected, retrying every second topic=%s error=%s", self._topic.name, error)

    def _is_held(self, request: SubscribeRequest, subscription: GatedSubscription | None) -> bool:
        """Return True for a consumer that must not receive copies before their acknowledgements are here."""
        is_marked = request.replicate_state or (subscription is not None and subscription.replicate_state)
        return (
            is_marked
            and request.durable
            and bool(self.role.consumers_from)
            and not self._is_exempt(request)
            and self.role.holds_consumers(iso_time(self._host.now_ms()))
        )

    def _consumers(self) -> Treatment:
        if self.role.role is Role.STANDBY and not self._topic.settings.standby_consumers_allowed:
            return Treatment.REFUSED
        return self.role.serving.consumers

    def _may_go(self, subscription: GatedSubscription) -> bool:
        return self.role.subscriptions_ready or subscription.drained

    def _local_consumers(self) -> list[Consumer]:
        subscriptions = list(self._topic.subscriptions.values())
        return [consumer for subscription in subscriptions for consumer in self._local_consumers_of(subscription)]

    def _local_consumers_of(self, subscription: GatedSubscription) -> list[Consumer]:
        return [consumer for consumer in subscription.consumers if not self._is_exempt(consumer.request)]

    def _is_exempt(self, request: SubscribeRequest) -> bool:
        """Return True for replication, and for readers of whole entries, whose positions are those of this cluster."""
        return request.reads_entries or sending_cluster(request.subscription, self._host.replicator_prefix) is not None

    def _refusal(self, treatment: Treatment) -> ServiceNotReady:
        role, about = self.role, self.role.about(self._topic.name)
        if treatment is Treatment.REDIRECTED:
            return TopicMoved(f"{about}: {role}", role.service_url, role.service_url_tls)
        return ServiceNotReady(f"{about}: {self._topic.name} is served at the other site, or here once it is active")


def _is_local(request: ProducerRequest) -> bool:
    return not (request.remote or is_lane(request.name or ""))
