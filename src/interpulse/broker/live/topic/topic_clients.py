"""The clients of one loaded topic, persistent or not: whether it takes any, and how it lets go of those it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.producing.producer_set import ProducerSet
from interpulse.model.errors import PreconditionFailed, PulsarError, ServiceNotReady
from interpulse.model.names import TopicName

__all__ = ["ConsumedSubscription", "TopicClients"]


class ConsumedSubscription(Protocol):
    """A subscription, as its topic lets go of consumers."""

    @property
    def consumers(self) -> Sequence[Consumer]: ...

    def close_consumers(self) -> None:
        """Disconnect all of them."""


class TopicClients:
    """See the module. ``subscriptions`` is the topic's own mapping, and changes with it."""

    __slots__ = ("_name", "_producers", "_subscriptions", "refusal")

    def __init__(
        self, name: TopicName, producers: ProducerSet, subscriptions: Mapping[str, ConsumedSubscription]
    ) -> None:
        self.refusal: PulsarError | None = None
        """Why the topic takes neither clients nor entries any more; None = it is open."""
        self._name = name
        self._producers = producers
        self._subscriptions = subscriptions

    @property
    def connected(self) -> bool:
        """A producer or a consumer is connected, or a producer waits."""
        producers = self._producers
        return bool(
            producers.by_name or producers.waiting or any(each.consumers for each in self._subscriptions.values())
        )

    @property
    def has_consumers_without_auto_consume(self) -> bool:
        """A consumer is connected whose schema, or lack of one, says what the messages are."""
        consumers = (consumer for subscription in self._subscriptions.values() for consumer in subscription.consumers)
        return not all(consumer.request.auto_consume for consumer in consumers)

    def check_open(self) -> None:
        """Raises ServiceNotReady once the topic has failed or is being closed."""
        if self.refusal is not None:
            raise ServiceNotReady(f"Topic {self._name} is temporarily unavailable")

    def check_none(self) -> None:
        """Raises PreconditionFailed while a client is connected."""
        if self.connected:
            raise PreconditionFailed(f"Topic {self._name} has active producers/subscriptions")

    def refuse_while_unloading(self) -> None:
        """Refuse clients and entries from now on; an earlier reason stays."""
        self.refusal = self.refusal or ServiceNotReady(f"Topic {self._name} is being unloaded")

    def retire(self) -> None:
        """The topic is about to be deleted: disconnect its clients, and take no others."""
        self.refusal = self.refusal or ServiceNotReady(f"Topic {self._name} is being deleted")
        self.disconnect()

    def refuse_elsewhere(self) -> None:
        """The topic may be another broker's: disconnect its clients, and take no others."""
        self.refusal = ServiceNotReady(f"Topic {self._name} is not served by this broker any more, look it up again")
        self.disconnect()

    def disconnect(self) -> None:
        """Disconnect all clients; they look the topic up again."""
        self._producers.close_by_broker()
        for subscription in list(self._subscriptions.values()):
            subscription.close_consumers()
