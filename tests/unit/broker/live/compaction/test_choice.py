"""Which messages compaction keeps."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.broker.live.compaction.choice import Choice, KeyShare, survivors
from interpulse.broker.live.compaction.compaction_entries import Chunk, EntryView, MessageView, Treatment
from interpulse.model.ids import Position
from interpulse.storage.api import LogEntry
from tests.unit.broker.live.compaction.test_compaction_entries import batch, messages_of, single

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))


def value(key: bytes | None) -> EntryView:
    return EntryView(Treatment.SINGLE, (MessageView(key),))


def tombstone(key: bytes) -> EntryView:
    return EntryView(Treatment.SINGLE, (MessageView(key, is_tombstone=True),))


def in_batch(*messages: MessageView) -> EntryView:
    return EntryView(Treatment.BATCH, messages)


def chunk(key: bytes | None, uuid: str, *, last: bool = False, producer: str = "p") -> EntryView:
    return EntryView(Treatment.SINGLE, (MessageView(key),), Chunk(producer, uuid, last))


def kept(views: Iterable[EntryView], *, keys_max: int = 100, keyless_kept: bool = False) -> list[int]:
    views = list(views)
    choice = Choice(keys_max=keys_max, keyless_kept=keyless_kept)
    while choice.looks_needed:
        look = choice.next_look()
        look.see(views)
        look.end()
    assert look.messages == sum(len(view.messages) for view in views)
    numbers = [number for number in range(look.messages) if choice.keeps(number)]
    assert choice.count == len(numbers)
    return numbers


MARKER = EntryView(Treatment.DROPPED)
OPAQUE = EntryView(Treatment.KEPT)


@pytest.mark.parametrize(
    ("views", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([value(A), value(B), value(A)], [1, 2], id="the newest of each key, in order"),
        pytest.param([value(A), tombstone(A)], [], id="a tombstone removes its key, and itself"),
        pytest.param([tombstone(A), value(A)], [1], id="a value after a tombstone stays"),
        pytest.param([tombstone(A)], [], id="a tombstone of nothing"),
        pytest.param([value(None), value(A)], [1], id="no key"),
        pytest.param([MARKER, value(A), MARKER], [1], id="markers"),
        pytest.param([OPAQUE, value(A), OPAQUE], [0, 1, 2], id="what cannot be read"),
        pytest.param(
            [in_batch(MessageView(A), MessageView(B), MessageView(A)), value(B)], [2, 3], id="messages of batches"
        ),
        pytest.param([value(A), in_batch(MessageView(A, is_tombstone=True), MessageView(B))], [2], id="in a batch"),
        pytest.param([in_batch(MessageView(None, is_gone=True), MessageView(A))], [1], id="removed before"),
        pytest.param([chunk(A, "u"), chunk(A, "u", last=True)], [0, 1], id="all chunks of a message"),
        pytest.param(
            [chunk(A, "u"), chunk(A, "u", last=True), chunk(A, "v"), chunk(A, "v", last=True)], [2, 3], id="the newest"
        ),
        pytest.param([chunk(A, "u"), chunk(A, "u", last=True), value(A)], [2], id="replaced by a small message"),
        pytest.param([value(A), chunk(A, "u")], [0, 1], id="the end of a message is still to come"),
        pytest.param(
            [chunk(A, "u"), chunk(A, "v"), chunk(A, "v", last=True)], [1, 2], id="a message that was given up"
        ),
        pytest.param(
            [chunk(A, "u", producer="p"), chunk(B, "v", producer="q"), chunk(A, "u", last=True, producer="p")],
            [0, 1, 2],
            id="chunks of several producers",
        ),
        pytest.param([chunk(None, "u"), chunk(None, "u", last=True)], [], id="chunks without a key"),
    ],
)
def test_choice(views: list[EntryView], expected: list[int]) -> None:
    assert kept(views) == expected


def test_choice_when_messages_without_a_key_stay_then_all_of_them_do() -> None:
    views = [value(None), value(A), value(None), chunk(None, "u"), chunk(None, "u", last=True)]
    assert kept(views, keyless_kept=True) == [0, 1, 2, 3, 4]


steps = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["value", "tombstone", "batch"])), max_size=120)


@given(steps, st.integers(1, 40))
def test_choice_with_little_memory_is_the_same(plan: list[tuple[int, str]], keys_max: int) -> None:
    views: list[EntryView] = []
    newest: dict[bytes, int] = {}
    number = 0
    for key_number, kind in plan:
        key = (key_number * 0x9E3779B97F4A7C15 % 2**64).to_bytes(16, "little")
        if kind == "batch":
            views.append(in_batch(MessageView(key), MessageView(key)))
        else:
            views.append(value(key) if kind == "value" else tombstone(key))
        number += len(views[-1].messages)
        newest[key] = number - 1
        if kind == "tombstone":
            del newest[key]
    assert kept(views, keys_max=keys_max) == sorted(newest.values())


def test_look_never_remembers_more_keys_than_it_may() -> None:
    choice = Choice(keys_max=10)
    most = 0
    while choice.looks_needed:
        look = choice.next_look()
        for number in range(100):
            look.see([value((number * 0x9E3779B97F4A7C15 % 2**64).to_bytes(16, "little"))])
            most = max(most, len(look._newest))
        look.end()
    assert choice.count == 100
    assert most == 10


def test_halves_of_a_share_have_every_key_once() -> None:
    keys = [number.to_bytes(16, "little") for number in range(64)]
    shares = [KeyShare()]
    for _ in range(4):
        shares = [half for share in shares for half in share.halves()]
    assert [sum(share.has(key) for share in shares) for key in keys] == [1] * 64


def test_survivors_keep_their_positions() -> None:
    entries = [
        LogEntry(Position(7, 0), single(b"old", partition_key="a")),
        LogEntry(Position(7, 1), batch(("a", b"1"), ("b", b"2"), ("a", b""))),
        LogEntry(Position(8, 0), single(b"new", partition_key="c")),
    ]
    choice = Choice(keys_max=9)
    choice.keep(2)
    choice.keep(4)
    found, number = survivors(entries, choice, 0)
    assert number == 5
    assert [each.position for each in found] == [Position(7, 1), Position(8, 0)]
    assert messages_of(found[0].entry) == [("", b"", True), ("b", b"2", False), ("", b"", True)]
    assert found[1] is entries[2]
