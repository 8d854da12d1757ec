"""Expiry that an operator asks for."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.registry.expiry import expire_everywhere, expire_older, expire_upto
from interpulse.model.errors import Conflict, SubscriptionNotFound
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position


def backlog(topic: Any, name: str = "s") -> int:
    return int(topic.stats()["subscriptions"][name]["msgBacklog"])


async def filled(bench: Any) -> Any:
    """A topic with five entries, published at 1000 to 1004, and two subscriptions that wait for all of them."""
    topic = await bench.topic()
    for name in ("s", "t"):
        await topic.create_subscription(name, position=MessageId(*EARLIEST))
    await bench.publish(topic, *range(5))
    return topic


async def test_by_time_then_what_is_older_goes_and_an_empty_backlog_is_a_conflict(bench: Any) -> None:
    topic = await filled(bench)
    await expire_older(topic, "s", 10**9)
    assert backlog(topic) == 5
    await expire_older(topic, "s", 0)
    assert (backlog(topic), backlog(topic, "t")) == (0, 5)
    with pytest.raises(Conflict, match="it has no backlog"):
        await expire_older(topic, "s", 0)


async def test_by_position_then_everything_up_to_it_goes_and_nothing_comes_back(bench: Any) -> None:
    topic = await filled(bench)
    expire_upto(topic, "s", Position(1, 1))
    assert backlog(topic) == 3
    expire_upto(topic, "s", EARLIEST)
    expire_upto(topic, "s", Position(1, 0))
    assert backlog(topic) == 3


@pytest.mark.parametrize("position", [Position(1, 5), Position(2, 0), LATEST])
async def test_by_position_when_it_is_behind_the_end_then_is_a_conflict(bench: Any, position: Position) -> None:
    topic = await filled(bench)
    with pytest.raises(Conflict, match="is behind the last message, 1:4"):
        expire_upto(topic, "s", position)
    assert backlog(topic) == 5


async def test_when_there_is_no_such_subscription_then_says_so(bench: Any) -> None:
    topic = await filled(bench)
    with pytest.raises(SubscriptionNotFound):
        expire_upto(topic, "none", Position(1, 1))
    with pytest.raises(SubscriptionNotFound):
        await expire_older(topic, "none", 1)


async def test_everywhere_then_a_conflict_does_not_keep_the_others_from_being_done() -> None:
    done: list[int] = []

    def step(number: int) -> Any:
        async def expire() -> None:
            done.append(number)
            if number in (1, 2):
                raise Conflict(f"conflict {number}")

        return expire

    with pytest.raises(Conflict, match="conflict 1"):
        await expire_everywhere(step(number) for number in range(4))
    assert done == [0, 1, 2, 3]
