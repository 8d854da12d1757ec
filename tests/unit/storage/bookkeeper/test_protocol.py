"""The protocol against exchanges recorded from real bookies."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.storage.bookkeeper.errors import BrokenConnection, Code
from interpulse.storage.bookkeeper.packets import Digest, DigestType
from interpulse.storage.bookkeeper.protocol import LAST_ENTRY, Added, Answer, ClientProtocol, add_frame, add_frames
from tests.unit.storage.bookkeeper.recorded import COMPUTED, EXCHANGES

L, UNKNOWN, FENCED_UNKNOWN, GAPS = 0x47A, 999999, 0xD9038, 0xBDE31
DIGEST = Digest(DigestType.CRC32C)
KEY = DIGEST.master_key
BAD_KEY = b"\1" * 20
Ask = Callable[[ClientProtocol], bytes]


def add(ledger: int, entry: int, confirmed: int, length: int, payload: bytes, key: bytes = KEY, **how: bool) -> Ask:
    def ask(protocol: ClientProtocol) -> bytes:
        protocol.add(ledger, (entry,), "ticket")
        return add_frame(key, DIGEST.seal(ledger, entry, confirmed, length, payload), **how)

    return ask


def read(ledger: int, entry: int, **how: bytes | bool) -> Ask:
    return lambda protocol: protocol.read(ledger, entry, "ticket", **how)  # type: ignore[arg-type]


def batch(ledger: int, first: int, count_max: int, bytes_max: int, before: int) -> Ask:
    def ask(protocol: ClientProtocol) -> bytes:
        protocol._batch_count = before
        return protocol.read_batch(ledger, first, "ticket", count_max=count_max, bytes_max=bytes_max)

    return ask


def unanswered(protocol: ClientProtocol) -> list[object]:
    return [ticket for _, ticket in protocol.unanswered_adds()] + protocol.unanswered_reads()


HELLO, WORLD = add(L, 0, -1, 5, b"hello"), add(L, 1, 0, 10, b"world")
AGAIN = add(L, 2, 1, 15, b"again", recovery=True)
FENCE = read(L, LAST_ENTRY, fence_key=KEY)
ASKED: dict[str, tuple[Ask, int, list[bytes]]] = {
    "add0": (HELLO, 0, []),
    "add1": (WORLD, 0, []),
    "read0": (read(L, 0), 0, [b"hello"]),
    "read last (-1) no fence": (read(L, LAST_ENTRY), 0, [b"world"]),
    "read missing": (read(L, 9), Code.NO_ENTRY, []),
    "read unknown ledger": (read(UNKNOWN, 0), Code.NO_LEDGER, []),
    "batch": (batch(L, 0, 100, 1 << 20, 6), 0, [b"hello", b"world"]),
    "batch missing": (batch(L, 9, 100, 1 << 20, 7), Code.NO_ENTRY, []),
    "batch maxcount 0": (batch(L, 0, 0, 0, 8), 0, [b"hello"]),
    "fence": (FENCE, 0, [b"world"]),
    "add fenced": (add(L, 2, 1, 15, b"again"), Code.FENCED, []),
    "recovery add": (AGAIN, 0, []),
    "recovery add again": (AGAIN, 0, []),
    "wrong key": (add(L, 3, 1, 15, b"again", BAD_KEY), Code.UNAUTHORIZED, []),
    "fence wrong key": (read(L, LAST_ENTRY, fence_key=BAD_KEY), Code.UNAUTHORIZED, []),
    "fence unknown ledger": (read(FENCED_UNKNOWN, LAST_ENTRY, fence_key=KEY), Code.NO_ENTRY, []),
    "add to it": (add(FENCED_UNKNOWN, 0, -1, 5, b"hello"), Code.FENCED, []),
    "add with gap & disorder": (add(GAPS, 5, -1, 5, b"hello"), 0, []),
    "lower after": (add(GAPS, 3, -1, 5, b"hello"), 0, []),
    "same again": (add(GAPS, 3, -1, 5, b"hellO"), 0, []),
    "read 3": (read(GAPS, 3), 0, [b"hellO"]),
    "read4": (read(GAPS, 4), Code.NO_ENTRY, []),
    "read -1": (read(GAPS, LAST_ENTRY), 0, [b"hello"]),
    "batch 3": (batch(GAPS, 3, 100, 1 << 20, 6), 0, [b"hellO"]),
}


@pytest.mark.parametrize("name", EXCHANGES)
def test_request_when_encoded_then_as_recorded_and_its_answer_is_understood(name: str) -> None:
    (ask, code, payloads), (request, reply) = ASKED[name], EXCHANGES[name]
    protocol = ClientProtocol()
    assert ask(protocol) == request
    assert unanswered(protocol) == ["ticket"]
    (answer,) = protocol.receive(reply)
    (ledger_id,) = struct.unpack(">q", reply[12:20])
    assert (answer.ticket, answer.code) == ("ticket", code)
    packets = answer.packets if isinstance(answer, Answer) else ()
    assert [DIGEST.open(packet, ledger_id).payload for packet in packets] == payloads
    assert unanswered(protocol) == []


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("add 5:0 lac -1 'hello'", add(5, 0, -1, 5, b"hello")),
        ("add 5:1 lac 0 'world'", add(5, 1, 0, 10, b"world")),
        ("recovery add", add(5, 1, 0, 10, b"world", recovery=True)),
        ("read 5:1", read(5, 1)),
        ("fence", read(5, LAST_ENTRY, fence_key=KEY)),
        ("recovery read", read(5, 1, fence_key=KEY, recovery=True)),
        ("batch", batch(5, 0, 100, 1 << 20, 0)),
    ],
)
def test_request_when_encoded_then_as_computed(name: str, ask: Ask) -> None:
    assert ask(ClientProtocol()) == COMPUTED[name]


def test_answers_when_out_of_order_then_each_finds_its_request() -> None:
    protocol = ClientProtocol()
    for entry in range(3):
        protocol.add(7, (entry,), f"add {entry}")
        protocol.read(7, entry, f"read {entry}")
    answers = b"".join(answer(operation, 0, 7, entry) for entry in (2, 0, 1) for operation in (2, 1))
    assert [each.ticket for each in protocol.receive(answers)] == [
        f"{what} {entry}" for entry in (2, 0, 1) for what in ("read", "add")
    ]


def test_requests_when_equal_then_answered_in_the_order_of_asking() -> None:
    protocol = ClientProtocol()
    for ticket in range(4):
        protocol.add(7, (0,), ticket)
    assert unanswered(protocol) == [0, 1, 2, 3]
    replies = answer(1, 106, 7, 0) + answer(1, 0, 7, 0) * 2
    assert list(protocol.receive(replies)) == [Added(0, 106, 0, 1), Added(1, 0, 0, 1), Added(2, 0, 0, 1)]
    protocol.add(7, (0,), 4)
    assert unanswered(protocol) == [3, 4]


def test_runs_when_answered_in_order_then_one_answer_else_several() -> None:
    protocol = ClientProtocol()
    protocol.add(7, range(10), "seven")
    protocol.add(8, range(3), "eight")
    protocol.add(7, range(8, 12), "again")  # 8 and 9 for the second time
    answers = [(7, 0), (7, 1), (7, 2), (8, 0), (7, 3), (7, 5), (7, 6), (7, 4), (8, 1), (8, 2)]
    answers += [(7, each) for each in (7, 8, 9, 8, 9, 10, 11)]
    raw = b"".join(answer(1, 104 if each == (7, 6) else 0, *each) for each in answers)
    assert list(protocol.receive(raw)) == [
        Added("seven", 0, 0, 3),
        Added("eight", 0, 0, 1),
        Added("seven", 0, 3, 1),
        Added("seven", 0, 5, 1),
        Added("seven", 104, 6, 1),
        Added("seven", 0, 4, 1),
        Added("eight", 0, 1, 2),
        Added("seven", 0, 7, 3),
        Added("again", 0, 8, 4),
    ]
    assert unanswered(protocol) == []


@given(
    order=st.permutations(range(12)),
    lost=st.integers(0, 11),
    cuts=st.lists(st.integers(1, 90), min_size=1),
    read_at=st.integers(0, 12),
)
def test_runs_when_answered_in_any_order_and_pieces_then_each_entry_once(
    order: list[int], lost: int, cuts: list[int], read_at: int
) -> None:
    protocol = ClientProtocol()
    for first in range(0, 12, 4):
        protocol.add(7, range(first, first + 4), first)
    protocol.read(7, 3, "read")
    answers = [answer(1, 0, 7, each) for each in order if each != lost]
    answers.insert(read_at, answer(2, 0, 7, 3, b"packet"))
    raw, at = b"".join(answers), 0
    told: list[int] = []
    reads = 0
    while at < len(raw):
        cut = cuts[at % len(cuts)]
        for each in protocol.receive(raw[at : at + cut]):
            if isinstance(each, Answer):
                reads += 1
                continue
            entries = range(each.first, each.first + each.entries)
            assert all(each.ticket <= entry < each.ticket + 4 for entry in entries)
            told += entries
        at += cut
    assert told == [each for each in order if each != lost]
    assert (reads, unanswered(protocol)) == (1, [lost // 4 * 4])


def test_answers_when_one_is_unexpected_then_earlier_ones_are_returned() -> None:
    protocol = ClientProtocol()
    protocol.add(7, range(3), "ticket")
    protocol.add(7, (4,), "another")
    receiving = protocol.receive(b"".join(answer(1, 0, 7, each) for each in range(5)))
    assert next(receiving) == Added("ticket", 0, 0, 3)
    with pytest.raises(BrokenConnection, match="an answer about 7:3, which nothing asked about"):
        next(receiving)
    assert protocol.unanswered_adds() == [(4, "another")]


@given(
    payloads=st.lists(st.binary(max_size=30), min_size=1, max_size=9),
    kind=st.sampled_from(DigestType),
    first=st.integers(0, 1 << 40),
    before=st.integers(0, 1 << 40),
)
def test_frames_when_made_for_a_run_then_as_for_each_entry(
    payloads: list[bytes], kind: DigestType, first: int, before: int
) -> None:
    digest = Digest(kind)
    lengths = list(accumulate(map(len, payloads), initial=before))[1:]
    fronts = digest.fronts(7, first, first - 1, lengths, payloads)
    assert add_frames(digest.master_key, fronts, payloads, digest.front_size) == [
        add_frame(digest.master_key, digest.seal(7, first + each, first - 1, lengths[each], payload))
        for each, payload in enumerate(payloads)
    ]


@given(cuts=st.lists(st.integers(1, 40), min_size=1))
def test_bytes_when_they_come_in_pieces_then_mean_the_same(cuts: list[int]) -> None:
    protocol = ClientProtocol()
    names = ("add0", "batch", "read0")
    for name in names:
        ASKED[name][0](protocol)
    raw = b"".join(EXCHANGES[name][1] for name in names)
    answers, at = list[Any](), 0
    while at < len(raw):
        cut = cuts[at % len(cuts)]
        answers += protocol.receive(raw[at : at + cut])
        at += cut
    assert [len(each.packets) if isinstance(each, Answer) else 0 for each in answers] == [0, 2, 1]


def answer(operation: int, code: int, ledger: int, entry: int, rest: bytes = b"") -> bytes:
    return struct.pack(">IIiqq", 24 + len(rest), 2 << 24 | operation << 16, code, ledger, entry) + rest


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is this a bookie"),
        (bytes(4), "a frame of 0 bytes"),
        (answer(1, 0, 5, 1), "an answer about 5:1, which nothing asked about"),
        (answer(2, 0, 5, 0), "which nothing asked about"),
        (answer(6, 0, 5, 0), "an answer to operation 6"),
        (bytes.fromhex("00000008 02010000 00000000"), "too short"),
        (bytes.fromhex("00000018 03010000 00000000") + bytes(16), "version 3"),
        (answer(7, 0, 5, 0), "too short"),
        (answer(7, 0, 5, 0, bytes.fromhex("0000000000000001 7fffffff")), "beyond its frame"),
        (answer(7, 0, 5, 0, bytes.fromhex("0000000000000001 0000")), "too short"),
    ],
    ids=[
        "another protocol", "no header", "add of nothing", "read of nothing", "unknown operation", "half an answer",
        "another version", "batch without id", "entry beyond the frame", "half a length",
    ],
)  # fmt: skip
def test_bytes_when_no_answer_of_a_bookie_then_the_connection_is_broken(raw: bytes, problem: str) -> None:
    protocol = ClientProtocol()
    protocol.add(5, (0,), "ticket")
    protocol.read_batch(5, 0, "ticket", count_max=1, bytes_max=1)
    with pytest.raises(BrokenConnection, match=problem):
        list(protocol.receive(raw))


@given(raw=st.binary(max_size=200))
def test_bytes_when_any_then_understood_or_the_connection_is_broken(raw: bytes) -> None:
    protocol = ClientProtocol()
    protocol.add(0, (0,), "ticket")
    try:
        answers = list(protocol.receive(raw))
    except BrokenConnection:
        return
    assert len(answers) <= 1
