"""The clients of one loaded topic, persistent or not: admission, limits, refusal and disconnection.

A topic without limits has no objects for them: publishing, delivery and subscribing then see None. System topics are
never limited. `rules.limits` has the numbers of clients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from interpulse.broker.live.api import SubscribeRequest, TopicHost, TopicSettings
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.dispatch.dispatch_limits import DispatchGate, DispatchLimit, TokenBucket, limit_of
from interpulse.broker.live.producing.producer import PublishLimits
from interpulse.broker.live.producing.producer_set import ProducerSet
from interpulse.model.errors import NotAllowed, PreconditionFailed, PulsarError, ServiceNotReady
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import SubscribeRate
from interpulse.rules.limits import check_consumers_of_subscription, check_consumers_of_topic, check_subscription_type

_REMEMBERED_MAX = 10_000
"""Limit for remembered consumers; above it, idle ones are forgotten, else the first half."""


class ConsumedSubscription(Protocol):
    """The interface of a subscription for disconnecting consumers."""

    @property
    def consumers(self) -> Sequence[Consumer]: ...
    def close_consumers(self) -> None: ...


class TopicClients:
    """The clients of one topic. ``subscriptions`` is a live view of the topic's own mapping."""

    __slots__ = ("_name", "_producers", "_subscriptions", "refusal")

    def __init__(
        self, name: TopicName, producers: ProducerSet, subscriptions: Mapping[str, ConsumedSubscription]
    ) -> None:
        self.refusal: PulsarError | None = None
        """The reason why the topic takes neither clients nor entries any more; None = it is open."""
        self._name = name
        self._producers = producers
        self._subscriptions = subscriptions

    @property
    def connected(self) -> bool:
        """True if a producer or a consumer is connected, or a producer waits."""
        consuming = any(subscription.consumers for subscription in self._subscriptions.values())
        return bool(consuming or self._producers.by_name or self._producers.waiting)

    @property
    def has_consumers_without_auto_consume(self) -> bool:
        """True if a connected consumer has a schema of its own, or none, instead of AUTO_CONSUME."""
        consumers = (consumer for subscription in self._subscriptions.values() for consumer in subscription.consumers)
        return not all(consumer.request.auto_consume for consumer in consumers)

    def check_open(self) -> None:
        """Raise ServiceNotReady once the topic has failed or is being closed."""
        if self.refusal is not None:
            raise ServiceNotReady(f"Topic {self._name} is temporarily unavailable")

    def check_none(self) -> None:
        """Raise PreconditionFailed while a client is connected."""
        if self.connected:
            raise PreconditionFailed(f"Topic {self._name} has active producers/subscriptions")

    def refuse_while_unloading(self) -> None:
        """Refuse clients and entries from now on; an earlier reason stays."""
        self.refusal = self.refusal or ServiceNotReady(f"Topic {self._name} is being unloaded")

    def retire(self) -> None:
        """Disconnect the clients of a topic that will be deleted, and refuse others."""
        self.refusal = self.refusal or ServiceNotReady(f"Topic {self._name} is being deleted")
        self.disconnect()

    def refuse_elsewhere(self) -> None:
        """Disconnect the clients of a topic that another broker may own, and refuse others."""
        self.refusal = ServiceNotReady(f"Topic {self._name} is not served by this broker any more, look it up again")
        self.disconnect()

    def disconnect(self) -> None:
        self._producers.close_by_broker()
        for subscription in list(self._subscriptions.values()):
            subscription.close_consumers()


class SubscribeLimits:
    """The rate at which one consumer may subscribe.

    A consumer is identified by its host, name and id, so that only one that subscribes again and again is refused.
    """

    def __init__(self, rate: SubscribeRate) -> None:
        self.rate = rate
        self._buckets: dict[tuple[str, str, int], TokenBucket] = {}

    def check(self, request: SubscribeRequest, now_ms: int) -> None:
        rate = self.rate
        host = request.address.rpartition(":")[0]
        consumer = host, request.consumer_name, request.consumer_id
        bucket = self._buckets.get(consumer)
        if bucket is None:
            if len(self._buckets) >= _REMEMBERED_MAX:
                full = rate.subscribes_per_consumer
                active = [(key, other) for key, other in self._buckets.items() if other.available(now_ms) < full]
                self._buckets = dict(active[-_REMEMBERED_MAX // 2 :])
            bucket = self._buckets[consumer] = TokenBucket(rate.subscribes_per_consumer, rate.period_seconds, now_ms)
        if bucket.available(now_ms) <= 0:
            raise NotAllowed(
                "Subscribe limited by subscribe rate limit per consumer. "
                f"(subscribeRate={rate.subscribes_per_consumer} per {rate.period_seconds} s)"
            )
        bucket.spend(1, now_ms)


class TopicLimits:
    """The limits of one topic. Without limits until the first `use`."""

    __slots__ = ("_call_later", "_name", "_now_ms", "_subscribes", "dispatch", "publish", "settings")

    def __init__(self, name: TopicName, host: TopicHost) -> None:
        self.settings = TopicSettings()
        self.publish: PublishLimits | None = None
        self.dispatch: DispatchLimit | None = None
        self._name = name
        self._now_ms = host.now_ms
        self._call_later = host.call_later
        self._subscribes: SubscribeLimits | None = None

    def use(self, settings: TopicSettings, producers: ProducerSet) -> None:
        """Apply limits. Producers that must encrypt and do not are disconnected."""
        now = self._now_ms()
        before, self.settings = self.settings, TopicSettings() if self._name.is_system else settings
        settings = self.settings
        self.publish = PublishLimits.of(settings, self.publish, now)
        self.dispatch = limit_of(settings.dispatch_rate, self.dispatch, now)
        rate = settings.subscribe_rate
        if rate is None or self._subscribes is None or self._subscribes.rate != rate:
            self._subscribes = SubscribeLimits(rate) if rate is not None and rate.limited else None
        producers.limit = settings.max_producers
        for producer in [*producers.by_name.values(), *producers.waiting]:
            if settings.encryption_required and not producer.request.encrypted:
                producer.close_by_broker()
            elif settings.publish_rate != before.publish_rate:
                producer.sink.throttle(0)

    @property
    def measured(self) -> bool:
        """True if a limit exists, and so metrics of limits."""
        own = self.settings
        return bool(self.publish or self.dispatch or own.subscription_dispatch_rate or own.backlog_quotas)

    @property
    def publish_throttled(self) -> int:
        return self.publish.throttled_count if self.publish is not None else 0

    def check_subscribe(self, request: SubscribeRequest) -> None:
        """Raise NotAllowed for a type that is not enabled, and for a consumer that subscribes too often."""
        check_subscription_type(str(self._name), request.sub_type.label, self.settings.subscription_types_enabled)
        if self._subscribes is not None:
            self._subscribes.check(request, self._now_ms())

    def check_consumers(self, of_topic: int, of_subscription: int) -> None:
        """Raise ConsumerBusy if the topic or the subscription has its maximum of consumers."""
        check_consumers_of_topic(of_topic, self.settings.max_consumers)
        check_consumers_of_subscription(of_subscription, self.settings.max_consumers_per_subscription)

    def gate(self, before: DispatchGate | None, wake: Callable[[], None]) -> DispatchGate | None:
        """Return the gate before the deliveries of one subscription, None = none; ``wake`` tries to deliver again."""
        own = limit_of(self.settings.subscription_dispatch_rate, before.own_limit if before else None, self._now_ms())
        if own is None and self.dispatch is None:
            return None
        if before is not None and before.own_limit is own and before.topic_limit is self.dispatch:
            return before
        return DispatchGate(self.dispatch, own, self._now_ms, self._call_later, wake)

    def follow(self, publish_messages: float, publish_bytes: float) -> None:
        if self.dispatch is not None:
            self.dispatch.follow(publish_messages, publish_bytes, self._now_ms())
