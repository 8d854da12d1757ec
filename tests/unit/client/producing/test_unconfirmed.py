"""Which receipts confirm which entries, and what is left of a run."""

from __future__ import annotations

import asyncio

import pytest

from interpulse.client.producing.unconfirmed import Outgoing, Receipt, UnconfirmedEntries
from interpulse.model.errors import AlreadyClosed
from interpulse.model.ids import Position

DROPPED = Position(-1, -1)


def outgoing(*sequence_ids: int) -> Outgoing:
    return Outgoing([b"x" * number for number in sequence_ids], [*sequence_ids], [1] * len(sequence_ids))


def queue_of(*runs: Outgoing) -> tuple[UnconfirmedEntries, list[asyncio.Future[Receipt]]]:
    queue = UnconfirmedEntries()
    futures = [asyncio.get_running_loop().create_future() for _ in runs]
    for run, future in zip(runs, futures, strict=True):
        queue.add(run, future, 1.0)
    return queue, futures


def places(*sequence_ids: int) -> list[Position]:
    return [Position(1, number) for number in sequence_ids]


@pytest.mark.parametrize(
    ("sequence_ids", "start", "taken", "next_id"),
    [
        ([1], 0, 1, 2),
        ([1, 2], 0, 2, 3),
        ([1, 2, 3, 4], 0, 3, 4),
        ([9, 1, 2], 1, 2, 3),
        ([1, 9], 0, 1, 2),
        ([2], 0, 0, 1),
    ],
    ids=["first", "part", "no-more-than-the-front", "from-start", "up-to-a-stranger", "later"],
)
async def test_confirm_takes_what_matches_the_front(
    sequence_ids: list[int], start: int, taken: int, next_id: int
) -> None:
    queue, _ = queue_of(outgoing(1, 2, 3), outgoing(4, 5))
    assert queue.confirm(sequence_ids, places(*sequence_ids), start) == taken
    rest = [number for run in queue for number in run.sequence_ids]
    assert (queue.count, queue.bytes) == (len(rest), sum(rest))
    assert queue.next_id == rest[0] == next_id


async def test_receipt_comes_with_the_last_of_a_run() -> None:
    queue, (future,) = queue_of(outgoing(1, 2, 3))
    queue.confirm([1, 2], [Position(1, 0), DROPPED], 0)
    assert not future.done()
    queue.confirm([3], [Position(1, 1)], 0)
    receipt = future.result()
    assert receipt == Receipt([1, 2, 3], [Position(1, 0), DROPPED, Position(1, 1)])
    assert (receipt.sequence_id, receipt.position, receipt.is_duplicate) == (3, Position(1, 1), False)
    assert (receipt.duplicates, receipt.last_position) == ([2], Position(1, 1))
    assert (queue.count, queue.bytes, queue.next_id, queue.next_deadline) == (0, 0, None, None)


async def test_fail_front_drops_the_rest_of_a_run_alone() -> None:
    queue, (first, second) = queue_of(outgoing(1, 2, 3), outgoing(4))
    queue.confirm([1], places(1), 0)
    queue.fail_front(AlreadyClosed("closed"))
    assert isinstance(first.exception(), AlreadyClosed)
    assert (second.done(), queue.count, queue.bytes, queue.next_id) == (False, 1, 4, 4)
    queue.fail_all(AlreadyClosed("closed"))
    assert isinstance(second.exception(), AlreadyClosed)
    assert queue.futures == []


async def test_markers_when_dropped_then_the_rest_stays_in_order_and_their_receipts_are_empty() -> None:
    marker = Outgoing([b"xx"], [2], [1], is_marker=True)
    queue, (first, dropped, last) = queue_of(outgoing(1), marker, outgoing(3, 4))
    queue.drop_markers()
    assert [list(run.sequence_ids) for run in queue] == [[1], [3, 4]]
    assert (queue.count, queue.bytes) == (3, 8)
    assert (dropped.result().duplicates, dropped.result().last_position) == ([], None)
    assert (first.done(), last.done()) == (False, False)


async def test_entries_when_rewritten_then_their_size_counts_and_receipts_go_on() -> None:
    queue, futures = queue_of(outgoing(1, 2), outgoing(3))
    assert queue.confirm([1], places(1), 0) == 1
    queue.rewrite(lambda entry: entry + b"yy")
    assert [list(rest.entries) for rest in queue] == [[b"xxyy"], [b"xxxyy"]]
    assert queue.bytes == 9
    assert queue.confirm([2, 3], places(2, 3), 0) + queue.confirm([2, 3], places(2, 3), 1) == 2
    assert (queue.bytes, queue.count) == (0, 0)
    assert futures[0].result().positions == places(1, 2)
