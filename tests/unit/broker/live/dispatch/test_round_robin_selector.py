"""Chunks of one message stay together and in order, whoever waits for what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.dispatch import round_robin_selector
from interpulse.broker.live.dispatch.round_robin_selector import RoundRobinSelector
from interpulse.broker.live.entry_metadata import EntryMetadataCache
from interpulse.model.ids import LATEST, Position

CHUNK = Callable[..., Delivery]


class RoundRobinConsumer:
    def __init__(self, name: str, permits: int = 100) -> None:
        self.name, self.permits, self.priority_level = name, permits, 0


def round_robin_consumer(name: str, *arguments: Any, **options: Any) -> Any:
    return RoundRobinConsumer(name, *arguments, **options)


@pytest.fixture
def selector() -> Any:
    cache = EntryMetadataCache(LATEST)
    return RoundRobinSelector(lambda: cache)


@pytest.fixture
def chunk(make_entry: Callable[..., bytes]) -> CHUNK:
    def chunk(number: int, uuid: str, chunk_id: int, of: int = 9) -> Delivery:
        return Delivery(Position(1, number), make_entry(number, uuid=uuid, chunk_id=chunk_id, num_chunks_from_msg=of))

    return chunk


@pytest.fixture
def plain(make_entry: Callable[..., bytes]) -> Callable[[int], Delivery]:
    return lambda number: Delivery(Position(1, number), make_entry(number))


def numbers(result: Any) -> tuple[dict[str, list[int]], list[int]]:
    parts = {consumer.name: [each.position.entry for each in part] for consumer, part in result.assignments}
    return parts, [each.position.entry for each in result.held]


def test_as_many_entries_are_read_as_consumers_have_permits_for(selector: RoundRobinSelector) -> None:
    assert selector.entries_wanted([round_robin_consumer("a", 3), round_robin_consumer("b", 4)]) == 7


def waiting(selector: RoundRobinSelector, *consumers: Any, entries_max: int = 10) -> list[int]:
    return [each.entry for each in selector.next_replays(consumers, entries_max)]


def test_chunks_when_their_owner_lacks_permits_then_they_wait_for_it_and_others_go_on(
    selector: Any, chunk: CHUNK, plain: Any
) -> None:
    a, b = round_robin_consumer("a", 2), round_robin_consumer("b", 3)
    batch = [chunk(0, "u", 0), chunk(1, "v", 0), *(chunk(2 + each, "u", 1 + each) for each in range(3)), plain(5)]
    parts, held = numbers(selector.select(batch, [a, b]))
    assert (parts, held) == ({"a": [0, 2], "b": [1, 5]}, [3, 4])
    assert selector.waiting == 2
    assert waiting(selector, b) == []
    assert waiting(selector, a, b) == [3, 4]
    a.permits = 1
    assert waiting(selector, a) == [3]
    a.permits = 5
    assert waiting(selector, a, entries_max=1) == [3]
    assert numbers(selector.select_replays([chunk(3, "u", 2), chunk(4, "u", 3)], [a, b])) == ({"a": [3, 4]}, [])
    assert selector.waiting == 0


def test_chunks_when_an_earlier_one_of_their_message_waits_then_they_wait_behind_it(
    selector: Any, chunk: CHUNK
) -> None:
    a, b = round_robin_consumer("a", 1), round_robin_consumer("b")
    selector.select([chunk(0, "u", 0), chunk(1, "u", 1)], [a])
    a.permits = 5
    assert numbers(selector.select([chunk(2, "u", 2), chunk(3, "v", 0)], [a, b])) == ({"b": [3]}, [2])
    assert waiting(selector, a) == [1, 2]


@pytest.mark.parametrize("gone", ["acknowledged", "forgotten"])
def test_chunk_that_waited_and_is_not_needed_any_more_then_later_ones_do_not_wait_for_it(
    selector: Any, chunk: CHUNK, gone: str
) -> None:
    a = round_robin_consumer("a", 1)
    selector.select([chunk(0, "u", 0), chunk(1, "u", 1), chunk(2, "u", 2)], [a])
    for number in (1, 2):
        if gone == "acknowledged":
            assert not selector.acknowledged(Position(1, number), held=False)
        else:
            selector.forget_upto(Position(1, number))
        assert selector.waiting == 2 - number
    a.permits = 5
    assert numbers(selector.select([chunk(3, "u", 3)], [a])) == ({"a": [3]}, [])


def test_chunk_that_is_with_a_consumer_when_acknowledged_then_replays_stay(selector: Any, chunk: CHUNK) -> None:
    a = round_robin_consumer("a", 1)
    selector.select([chunk(0, "u", 0), chunk(1, "u", 1)], [a])
    selector.acknowledged(Position(1, 1), held=True)
    assert waiting(selector, a) == [1]


def test_message_when_its_last_chunk_is_sent_then_its_consumer_is_forgotten(selector: Any, chunk: CHUNK) -> None:
    a, b = round_robin_consumer("a"), round_robin_consumer("b")
    assert numbers(selector.select([chunk(0, "u", 0, 2), chunk(1, "u", 1, 2)], [a])) == ({"a": [0, 1]}, [])
    assert numbers(selector.select([chunk(2, "u", 0, 2)], [b])) == ({"b": [2]}, []), "the producer sends it again"


def test_messages_that_never_end_when_they_are_too_many_then_the_oldest_is_forgotten(
    selector: Any, chunk: CHUNK, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(round_robin_selector, "_UNFINISHED_CHUNKS_MAX", 2)
    a, b = round_robin_consumer("a"), round_robin_consumer("b")
    selector.select([chunk(0, "u", 0), chunk(1, "v", 0)], [a])
    assert numbers(selector.select([chunk(2, "u", 1)], [b])) == ({}, [2]), "two are remembered"
    selector.acknowledged(Position(1, 2), held=False)
    selector.select([chunk(3, "w", 0)], [a])
    assert numbers(selector.select([chunk(4, "u", 1), chunk(5, "w", 1)], [b])) == ({"b": [4]}, [5])


def test_entries_behind_the_last_permit_are_left_for_the_next_time(selector: Any, chunk: CHUNK, plain: Any) -> None:
    a = round_robin_consumer("a", 1)
    selected = selector.select([chunk(0, "u", 0), plain(1), plain(2)], [a])
    assert (numbers(selected), selected.entry_count) == (({"a": [0]}, []), 1)


def test_consumer_that_left_then_its_chunks_go_to_another(selector: Any, chunk: CHUNK) -> None:
    a, b = round_robin_consumer("a", 1), round_robin_consumer("b")
    selector.select([chunk(0, "u", 0), chunk(1, "u", 1)], [a])
    selector.left(a)
    selector.give_back([Position(1, 0)])
    assert waiting(selector, b) == [0, 1]
    assert numbers(selector.select_replays([chunk(0, "u", 0), chunk(1, "u", 1)], [b])) == ({"b": [0, 1]}, [])
    assert numbers(selector.select([chunk(2, "u", 2)], [a, b])) == ({"b": [2]}, [])


def test_reset_when_done_then_nothing_waits_and_no_chunk_has_an_owner(selector: Any, chunk: CHUNK) -> None:
    a, b = round_robin_consumer("a", 1), round_robin_consumer("b")
    selector.select([chunk(0, "u", 0), chunk(1, "u", 1)], [a])
    selector.reset()
    assert selector.waiting == 0
    assert numbers(selector.select([chunk(0, "u", 0), chunk(1, "u", 1)], [b])) == ({"b": [0, 1]}, [])


def test_last_chunk_when_it_alone_is_sent_again_then_any_consumer_gets_it(selector: Any, chunk: CHUNK) -> None:
    a, b = round_robin_consumer("a"), round_robin_consumer("b")
    selector.select([chunk(0, "u", 0, 2), chunk(1, "u", 1, 2)], [a])
    selector.give_back([Position(1, 1)])
    assert numbers(selector.select_replays([chunk(1, "u", 1, 2)], [b])) == ({"b": [1]}, [])


def test_replays_go_to_consumers_in_turn_as_far_as_permits_go(selector: Any, plain: Any) -> None:
    a, b = round_robin_consumer("a", 1), round_robin_consumer("b", 1)
    selector.give_back([Position(1, number) for number in range(5)])
    assert waiting(selector, a, b) == [0, 1]
    assert numbers(selector.select_replays([plain(0)], [a, b])) == ({"a": [0]}, [])
    assert numbers(selector.select_replays([plain(1)], [a, b])) == ({"b": [1]}, [])
    assert waiting(selector, a) == [2]
