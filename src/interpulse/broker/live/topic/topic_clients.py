"""The clients of one loaded topic, persistent or not: admission, refusal and disconnection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.producing.producer_set import ProducerSet
from interpulse.model.errors import PreconditionFailed, PulsarError, ServiceNotReady
from interpulse.model.names import TopicName


class ConsumedSubscription(Protocol):
    """The interface of a subscription for disconnecting consumers."""

    @property
    def consumers(self) -> Sequence[Consumer]: ...

    def close_consumers(self) -> None:
        """Disconnect all consumers."""


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
        producers = self._producers
        return bool(
            producers.by_name
            or producers.waiting
            or any(subscription.consumers for subscription in self._subscriptions.values())
        )

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
        """Disconnect all clients; they look the topic up again."""
        self._producers.close_by_broker()
        for subscription in list(self._subscriptions.values()):
            subscription.close_consumers()
