"""The place of a reader on another site, from what it was given out on the first one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from interpulse.client.consuming.copied_entries import CopiedEntry
from interpulse.client.consuming.read_place import ReadPlace, check_site
from interpulse.client.consuming.unpacker import Start
from interpulse.client.failover.sites import Site
from interpulse.model.errors import MessageOfAnotherCluster
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position

EAST, WEST, NORTH = "pulsar://east", "pulsar://west", "pulsar://north"
BEGINNING = Start(MessageId.of(EARLIEST))


def message(cluster: str, ledger: int, entry: int, batch: int = -1, *, source: tuple[int, int] | None = None) -> Any:
    original = None if source is None else Position(*source)
    message_id = MessageId(ledger, entry, -1, batch).of_site(cluster, original)
    return SimpleNamespace(id=message_id, publish_time_ms=entry * 1000)


class FakeSearch:
    """A topic on another site with copies of these source positions, one after the other in ledger 3."""

    def __init__(self, *sources: tuple[int, int]) -> None:
        self.sources = [Position(*source) for source in sources]
        self.time_ms: int | None = None

    async def open(self) -> None: ...

    async def last_copy(self, source: Position, published_ms: int | None) -> CopiedEntry | None:
        copies = [(Position(3, number), each) for number, each in enumerate(self.sources) if each <= source]
        return CopiedEntry(*copies[-1], "east", "lane") if copies else None

    async def last_before_time(self, time_ms: int) -> Position:
        self.time_ms = time_ms
        return Position(3, 77)


async def moved(place: ReadPlace, search: FakeSearch, cluster: str = WEST) -> Start:
    return await place.at_site(cluster, search, overlap_s=60, topic="t")


@pytest.fixture
def place() -> ReadPlace:
    return ReadPlace(BEGINNING, EAST, 500_000)


async def test_place_when_the_copy_is_there_then_is_behind_it_with_the_same_batch_index(place: ReadPlace) -> None:
    place.note(message(EAST, 40, 1, 5))
    assert await moved(place, FakeSearch((40, 0), (40, 1), (40, 2))) == Start(MessageId(3, 1, -1, 5))


async def test_place_when_the_copy_has_not_arrived_then_later_copies_of_read_messages_are_passed(
    place: ReadPlace,
) -> None:
    place.note(message(EAST, 40, 4))
    assert await moved(place, FakeSearch((40, 0), (40, 2))) == Start(MessageId(3, 1))
    read, local = message(WEST, 3, 2, source=(40, 4)), message(WEST, 3, 3)
    assert place.unread([read]) == []
    assert place.unread([local]) == [local]
    assert place.unread([message(WEST, 3, 4, source=(40, 3))]) == []
    new = message(WEST, 3, 5, source=(40, 5))
    assert place.unread([new]) == [new]
    assert place.unread([read]) == [read]  # positions ascend: nothing is compared any more


async def test_place_when_both_sites_were_written_then_is_the_earlier_one_and_nothing_comes_twice(
    place: ReadPlace,
) -> None:
    place.note(message(EAST, 40, 1))
    place.note(message(EAST, 40, 2, source=(3, 0)))  # the first entry of west
    place.note(message(EAST, 40, 3))
    assert await moved(place, FakeSearch((1, 1), (40, 1), (40, 3))) == Start(MessageId(3, 0))
    copies = [message(WEST, 3, 1, source=(40, 1)), message(WEST, 3, 3, source=(40, 3))]
    unread = message(WEST, 3, 2)
    assert [place.unread([each]) for each in (copies[0], unread, copies[1])] == [[], [unread], []]


async def test_place_when_only_a_part_of_a_batch_was_read_then_the_rest_comes(place: ReadPlace) -> None:
    place.note(message(EAST, 40, 4, 1))
    await moved(place, FakeSearch((40, 2)))
    batch = [message(WEST, 3, 5, index, source=(40, 4)) for index in range(4)]
    assert place.unread(batch) == batch[2:]


async def test_place_when_all_that_was_read_came_from_the_new_site_then_is_known_there(place: ReadPlace) -> None:
    place.note(message(EAST, 40, 1, 2, source=(7, 9)))
    assert await moved(place, FakeSearch()) == Start(MessageId(7, 9, -1, 2))


async def test_place_when_copies_name_no_source_then_goes_by_publish_time(
    place: ReadPlace, caplog: pytest.LogCaptureFixture
) -> None:
    place.note(message(EAST, 40, 100))
    search = FakeSearch()
    assert await moved(place, search) == Start(MessageId(3, 77))
    assert search.time_ms == 40_000
    assert "publish time" in caplog.text


async def test_place_when_the_client_returns_before_it_read_then_is_the_former_one(place: ReadPlace) -> None:
    place.note(message(EAST, 40, 1))
    await moved(place, FakeSearch((40, 1)))
    assert await moved(place, FakeSearch(), EAST) == Start(MessageId(40, 1))


async def test_place_when_the_client_returns_after_it_read_then_is_the_earlier_one(place: ReadPlace) -> None:
    place.note(message(EAST, 40, 1))
    await moved(place, FakeSearch((40, 1)))
    place.note(message(WEST, 3, 1))
    place.note(message(WEST, 3, 2, source=(40, 2)))
    assert await moved(place, FakeSearch((3, 0), (3, 1)), EAST) == Start(MessageId(3, 1))
    passed, new = message(EAST, 40, 2), message(EAST, 40, 3)
    assert [place.unread([each]) for each in (passed, new)] == [[], [new]]


async def test_place_when_there_is_a_third_site_then_what_came_last_counts(place: ReadPlace) -> None:
    place.note(message(EAST, 40, 1))
    await moved(place, FakeSearch((40, 1)))
    place.note(message(WEST, 3, 1))
    assert await moved(place, FakeSearch((3, 1)), NORTH) == Start(MessageId(3, 0))


@pytest.mark.parametrize("start", [BEGINNING, Start(MessageId.of(EARLIEST), included=True)])
async def test_place_when_nothing_was_read_from_the_beginning_then_is_the_beginning(start: Start) -> None:
    assert await moved(ReadPlace(start, EAST, 0), FakeSearch()) == start


async def test_place_when_nothing_was_read_from_the_end_then_goes_by_the_time_of_opening() -> None:
    search = FakeSearch()
    assert await moved(ReadPlace(Start(MessageId.of(LATEST)), EAST, 500_000), search) == Start(MessageId(3, 77))
    assert search.time_ms == 440_000


async def test_place_when_the_first_message_was_not_taken_then_it_comes_again() -> None:
    place = ReadPlace(Start(MessageId.of(LATEST)), EAST, 0)
    place.begin_at(Position(40, 2))
    assert await moved(place, FakeSearch((40, 1), (40, 2))) == Start(MessageId(3, 1), included=True)


async def test_place_when_reading_began_at_an_id_that_was_not_copied_then_begins_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    place = ReadPlace(Start(MessageId(40, 2)), EAST, 0)
    assert await moved(place, FakeSearch()) == BEGINNING
    assert "begins again" in caplog.text


async def test_place_when_sought_by_time_then_goes_by_that_time(place: ReadPlace) -> None:
    place.note(message(EAST, 40, 1))
    place.restart(None, 123_000)
    search = FakeSearch((40, 1))
    assert await moved(place, search) == Start(MessageId(3, 77))
    assert search.time_ms == 123_000


def test_message_id_when_it_belongs_to_another_site_then_both_are_named() -> None:
    session: Any = SimpleNamespace(cluster=WEST, site=Site(WEST))
    check_site(MessageId(1, 2), session)
    check_site(MessageId(1, 2).of_site(WEST), session)
    with pytest.raises(MessageOfAnotherCluster, match=f"{EAST}.*{WEST}"):
        check_site(MessageId(1, 2).of_site(EAST), session)

    redirected: Any = SimpleNamespace(cluster=WEST, site=None)
    unsent: Any = SimpleNamespace(cluster=None, site=None)
    check_site(MessageId.of(EARLIEST), redirected)
    with pytest.raises(MessageOfAnotherCluster, match=f"the cluster of the service URL, and the client is at {WEST}"):
        check_site(MessageId(1, 2), redirected)
    with pytest.raises(MessageOfAnotherCluster, match=f"{WEST}, and the client is at that of its service URL"):
        check_site(MessageId(1, 2).of_site(WEST), unsent)


@pytest.mark.parametrize(
    ("origin", "start", "time_ms"), [(None, Start(MessageId(3, 0)), None), ("west", Start(MessageId(3, 77)), 940_000)]
)
async def test_place_when_the_client_had_one_site_then_is_behind_the_last_message(
    origin: str | None, start: Start, time_ms: int | None
) -> None:
    last: Any = SimpleNamespace(id=MessageId(40, 1), publish_time_ms=1_000_000, replicated_from=origin)
    place, search = ReadPlace.behind(last, BEGINNING, EAST, now_ms=0, overlap_s=60), FakeSearch((40, 1))
    assert await moved(place, search) == start
    assert search.time_ms == time_ms


async def test_place_when_nothing_was_given_out_then_is_where_it_began() -> None:
    assert await moved(ReadPlace.behind(None, BEGINNING, EAST, now_ms=0, overlap_s=60), FakeSearch()) == BEGINNING
