"""The effective limits of one loaded topic; see `rules.limits` for the numbers of clients.

A topic without limits has none of these objects: publishing, delivery and subscribing then see None. System topics are
never limited.
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


class TopicLimits:
    """The limits of one topic. Without limits until the first `use`."""

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
        """The number of times that the publish rate throttled a client."""
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
        """Follow the publish rates per second of the last period."""
        if self.dispatch is not None:
            self.dispatch.follow(publish_messages, publish_bytes, self._now_ms())
