"""Whose keys are whose, while consumers come and go."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.dispatch.sticky_keys import StickyKeys
from interpulse.broker.live.requests import KeyRange, KeySharing, SubscribeRequest, SubType
from interpulse.model.errors import ConsumerAssignError


class StickyConsumer:
    def __init__(self, name: str, *ranges: KeyRange) -> None:
        self.name = name
        self.request = SubscribeRequest(1, "s", SubType.KEY_SHARED, name, key_sharing=KeySharing(ranges))


def sticky_consumer(name: str, *arguments: Any, **options: Any) -> Any:
    return StickyConsumer(name, *arguments, **options)


def sticky_keys(*consumers: Any) -> StickyKeys:
    made = StickyKeys()
    for consumer in consumers:
        made.join(consumer)
    return made


def test_consumers_of_one_name_all_get_keys() -> None:
    consumers = [sticky_consumer("same") for _ in range(3)]
    made = sticky_keys(*consumers)
    assert {id(made.owner(slot)) for slot in range(1, 65536, 50)} == set(map(id, consumers))
    assert consumers[0] in made


def test_ranges_when_asked_for_before_any_owner_then_they_are_there() -> None:
    alone: Any = sticky_consumer("a")
    assert sticky_keys(alone).ranges_of(alone) == [KeyRange(1, 65535)]


def test_what_was_remembered_is_looked_up_again_when_a_consumer_leaves() -> None:
    first, second = sticky_consumer("a"), sticky_consumer("b")
    made = sticky_keys(first, second)
    [slot] = [each for each in range(1, 200) if made.owner(each) is second][:1]
    made.leave(second)
    assert (made.owner(slot) is first) is True
    made.leave(first)
    assert (made.owner(slot), first in made) == (None, False)


def test_consumer_that_was_refused_owns_nothing() -> None:
    first, refused = sticky_consumer("a", KeyRange(0, 9)), sticky_consumer("b", KeyRange(5, 20))
    made = sticky_keys(first)
    with pytest.raises(ConsumerAssignError, match=r"Range conflict with consumer a: \[5,20\] overlaps with \[0,9\]"):
        made.join(refused)
    assert (made.owner(15), made.owner(5), made.mode) == (None, first, "STICKY")
    assert made.ranges_of(first) == [KeyRange(0, 9)]
