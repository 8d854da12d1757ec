"""The limits of one loaded topic that are in force now; see `rules.limits` for the numbers of clients.

A topic that no policy limits carries none of it: what is published, delivered and subscribed then meets None. Topics of
the system are never limited.
"""

from __future__ import annotations

from collections.abc import Callable

from interpulse.broker.live.dispatch.dispatch_limits import DispatchGate, DispatchLimit, limit_of
from interpulse.broker.live.producing.producer_set import ProducerSet
from interpulse.broker.live.producing.publish_limits import PublishLimits
from interpulse.broker.live.requests import SubscribeRequest
from interpulse.broker.live.settings import TopicSettings
from interpulse.broker.live.topic.subscribe_limits import SubscribeLimits
from interpulse.model.names import TopicName
from interpulse.rules.limits import (
    check_consumers_of_subscription,
    check_consumers_of_topic,
    check_subscription_type,
)

__all__ = ["TopicLimits"]


class TopicLimits:
    """See the module. Limits nothing until `use` was called."""

    __slots__ = ("_call_later", "_name", "_now_ms", "_subscribes", "dispatch", "publish", "settings")

    def __init__(
        self, name: TopicName, now_ms: Callable[[], int], call_later: Callable[[int, Callable[[], None]], None]
    ) -> None:
        """``call_later(ms, call)`` is the clock's."""
        self.settings = TopicSettings()
        self.publish: PublishLimits | None = None
        self.dispatch: DispatchLimit | None = None
        self._name = name
        self._now_ms = now_ms
        self._call_later = call_later
        self._subscribes: SubscribeLimits | None = None

    def use(self, settings: TopicSettings, producers: ProducerSet) -> None:
        """These are in force from now on. Producers that have to encrypt and do not are disconnected."""
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
        """There is something that a policy holds back or lets go, and counts."""
        own = self.settings
        return bool(self.publish or self.dispatch or own.subscription_dispatch_rate or own.backlog_quotas)

    @property
    def publish_throttled(self) -> int:
        """How often a client was not read from because of the publish rate."""
        return self.publish.throttled_count if self.publish is not None else 0

    def check_subscribe(self, request: SubscribeRequest) -> None:
        """Raises NotAllowed for a type that is not enabled, and for a consumer that comes too often."""
        check_subscription_type(str(self._name), request.sub_type.label, self.settings.subscription_types_enabled)
        if self._subscribes is not None:
            self._subscribes.check(request, self._now_ms())

    def check_consumers(self, of_topic: int, of_subscription: int) -> None:
        """Raises ConsumerBusy if a topic or a subscription with so many consumers may have no more."""
        check_consumers_of_topic(of_topic, self.settings.max_consumers)
        check_consumers_of_subscription(of_subscription, self.settings.max_consumers_per_subscription)

    def gate(self, before: DispatchGate | None, wake: Callable[[], None]) -> DispatchGate | None:
        """The gate before the deliveries of one subscription, None = none; ``wake`` tries to deliver again."""
        own = limit_of(self.settings.subscription_dispatch_rate, before.own_limit if before else None, self._now_ms())
        if own is None and self.dispatch is None:
            return None
        if before is not None and before.own_limit is own and before.topic_limit is self.dispatch:
            return before
        return DispatchGate(self.dispatch, own, self._now_ms, self._call_later, wake)

    def follow(self, publish_messages: float, publish_bytes: float) -> None:
        """The producers' rates of the last period, per second."""
        if self.dispatch is not None:
            self.dispatch.follow(publish_messages, publish_bytes, self._now_ms())
