"""The dispatch for a subscription's first consumer, and the check whether further consumers fit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from interpulse.broker.live.api import SubscribeRequest, SubType, TopicSettings
from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.dispatch.consumer import Consumer, choose_active
from interpulse.broker.live.dispatch.delayed_entries import DelayedEntries
from interpulse.broker.live.dispatch.entry_feed import FeedSource
from interpulse.broker.live.dispatch.key_selector import KeySelector
from interpulse.broker.live.dispatch.round_robin_selector import RoundRobinSelector
from interpulse.broker.live.dispatch.shared import SharedDispatch
from interpulse.broker.live.dispatch.single_active import SingleActiveDispatch
from interpulse.broker.live.dispatch.sticky_keys import overlapping
from interpulse.model.errors import ConsumerBusy
from interpulse.model.names import TopicName

Dispatch = SingleActiveDispatch | SharedDispatch


class DispatchOwner(FeedSource, Protocol):
    """The interface of the topic for a dispatch."""

    name: TopicName
    now_ms: Callable[[], int]
    settings: TopicSettings


def new_dispatch(request: SubscribeRequest, owner: DispatchOwner, cursor: Cursor, wake: Callable[[], None]) -> Dispatch:
    """Create the dispatch for a first consumer. ``wake`` is called when there may be something to send."""
    sub_type, name = request.sub_type, owner.name
    if sub_type in (SubType.EXCLUSIVE, SubType.FAILOVER):
        return SingleActiveDispatch(
            sub_type, owner, cursor, wake, lambda consumers: choose_active(consumers, str(name), name.partition_index)
        )
    selector: RoundRobinSelector | KeySelector = RoundRobinSelector(lambda: owner.entry_metadata)
    if sub_type is SubType.KEY_SHARED:
        selector = KeySelector(ordered=not request.key_sharing.out_of_order_allowed)
    dispatch = SharedDispatch(sub_type, owner, cursor, selector, owner.now_ms, wake)
    dispatch.honour_delays(delays_of(owner, wake))
    return dispatch


def delays_of(owner: DispatchOwner, wake: Callable[[], None]) -> DelayedEntries | None:
    """Return the store of delayed entries; None if the policies allow no delays."""
    policy = owner.settings.delayed_delivery
    if policy is None or not policy.active:
        return None
    return DelayedEntries(
        policy.tick_millis,
        owner.now_ms,
        lambda seconds, callback: asyncio.get_running_loop().call_later(seconds, callback),
        wake,
    )


def fits(request: SubscribeRequest, first: SubscribeRequest) -> bool:
    """Return True if a consumer can share the dispatch that was made for another one."""
    return not _difference(request, first)


def check_fitting(request: SubscribeRequest, first: SubscribeRequest) -> None:
    """Raise ConsumerBusy if a consumer does not fit the connected ones."""
    difference = _difference(request, first)
    if difference:
        raise ConsumerBusy(f"Subscription is of different type. Active subscription {difference}.")


async def make_way(request: SubscribeRequest, consumers: Sequence[Consumer]) -> None:
    """Close consumers in the way whose client is gone; raise ConsumerBusy as `check_fitting` does.

    A client may reconnect before its broken connection is detected.
    """
    if consumers:
        check_fitting(request, consumers[0].request)
    if in_the_way(request, consumers):
        for consumer in list(consumers):
            if not await consumer.sink.is_alive():
                consumer.close()


def _difference(request: SubscribeRequest, first: SubscribeRequest) -> str:
    """Return the difference that keeps two consumers from sharing a subscription; "" = none."""
    if request.sub_type is not first.sub_type:
        return (
            f"type of '{first.sub_type.label}' is different than the connecting consumer's type "
            f"'{request.sub_type.label}'"
        )
    if request.sub_type is not SubType.KEY_SHARED:
        return ""
    mine, theirs = request.key_sharing, first.key_sharing
    if mine.mode != theirs.mode:
        return (
            f"key_shared mode of '{theirs.mode}' is different than the connecting consumer's key_shared mode "
            f"'{mine.mode}'"
        )
    if mine.out_of_order_allowed == theirs.out_of_order_allowed:
        return ""
    if theirs.out_of_order_allowed:
        return "allows out of order delivery while the connecting consumer does not allow it"
    return "does not allow out of order delivery while the connecting consumer allows it"


def in_the_way(request: SubscribeRequest, consumers: Sequence[Consumer]) -> bool:
    """Return True if a consumer can join only after one of these leaves.

    That is so for an Exclusive consumer, and for one whose key ranges are taken.
    """
    if request.sub_type is SubType.EXCLUSIVE:
        return bool(consumers)
    wanted = request.key_sharing.sticky_ranges if request.sub_type is SubType.KEY_SHARED else ()
    taken = [sticky_range for other in consumers for sticky_range in other.request.key_sharing.sticky_ranges]
    return any(overlapping(mine, theirs) for mine in wanted for theirs in taken)
