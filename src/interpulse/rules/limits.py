"""Limits on the clients of a topic. A refusal names the policy and its value. 0 = no limit.

Replicators and system topics are exempt; the caller excludes them.
"""

from __future__ import annotations

from interpulse.model.errors import ConsumerBusy, NotAllowed, ProducerBusy


def check_producers(topic: str, open_count: int, limit: int) -> None:
    """Raise ProducerBusy if the topic has the maximum number of producers."""
    if 0 < limit <= open_count:
        raise ProducerBusy(f"Topic '{topic}' reached max producers limit (maxProducers={limit})")


def check_consumers_of_topic(open_count: int, limit: int) -> None:
    """Raise ConsumerBusy if all subscriptions together have the maximum number of consumers."""
    if 0 < limit <= open_count:
        raise ConsumerBusy(f"Topic reached max consumers limit (maxConsumers={limit})")


def check_consumers_of_subscription(open_count: int, limit: int) -> None:
    """Raise ConsumerBusy if the subscription has the maximum number of consumers."""
    if 0 < limit <= open_count:
        raise ConsumerBusy(f"Subscription reached max consumers limit (maxConsumersPerSubscription={limit})")


def check_subscriptions(topic: str, count: int, limit: int) -> None:
    """Raise NotAllowed if the topic has the maximum number of subscriptions."""
    if 0 < limit <= count:
        raise NotAllowed(
            f"Exceed the maximum number of subscriptions of the topic: {topic} (maxSubscriptionsPerTopic={limit})"
        )


def check_subscription_type(topic: str, label: str, enabled: frozenset[str] | None) -> None:
    """Raise NotAllowed for a type that is not enabled; None = all are."""
    if enabled is not None and label not in enabled:
        labels = ",".join(sorted(enabled))
        raise NotAllowed(f"Topic[{{{topic}}}] doesn't support {label} sub type! (subscriptionTypesEnabled={labels})")
