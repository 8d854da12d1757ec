"""Pure parts of the list of a tail: positions with a copy, rows of entries, conflicts, and the comparison of sites."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.client.consuming.entry_reader import Entry
from interpulse.failover.tail.incident import Incident, IncidentError, LastCopy, incident_directory
from interpulse.failover.tail.listing import json_lines
from interpulse.failover.tail.rows import (
    CopiedPositions,
    KeyedMessage,
    TailMessage,
    conflicts,
    payload_sha,
    tail_messages,
)
from interpulse.failover.tail.sameness import Sameness, lost_positions, sameness
from interpulse.model.ids import EARLIEST, Position
from interpulse.replication.acknowledgements import Acknowledgements, Span
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry, parse_entry

TOPIC = "persistent://public/default/orders"
POSITIONS = st.builds(Position, st.integers(0, 4), st.integers(0, 40))


@given(st.lists(POSITIONS))
def test_copied_positions_when_added_in_any_order_then_has_exactly_these(added: list[Position]) -> None:
    copied = CopiedPositions()
    for position in added:
        copied.add(position)
    everything = {Position(ledger, entry) for ledger in range(5) for entry in range(41)}
    assert {position for position in everything if position in copied} == set(added)


def test_copied_positions_when_consecutive_then_take_the_room_of_one() -> None:
    copied = CopiedPositions()
    for entry in range(10_000):
        copied.add(Position(3, entry))
    assert len(copied._spans) == 1


def entry_of(payload: bytes, **fields: Any) -> Entry:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1000, **fields)
    raw = build_entry(metadata.SerializeToString(), payload)
    return Entry(Position(3, 4), raw, parse_entry(raw))


def batch_of(count: int) -> Entry:
    payload = b""
    for number in range(count):
        one = pb.SingleMessageMetadata(partition_key=f"k{number}", payload_size=2, sequence_id=7 + number)
        raw = one.SerializeToString()
        payload += len(raw).to_bytes(4, "big") + raw + b"%02d" % number
    return entry_of(payload, num_messages_in_batch=count)


@given(st.integers(1, 20), st.sets(st.integers(0, 19)), st.booleans())
def test_batch_when_parts_are_acknowledged_then_each_message_names_its_subscriptions(
    count: int, done: set[int], is_whole: bool
) -> None:
    waiting = sum(1 << index for index in range(count) if index not in done)
    here = Position(3, 4)
    cursors = {
        "all": Acknowledgements(Position(3, 3), (Span(here, here),) if is_whole else ()),
        "some": Acknowledgements(Position(3, 3), masks={here: waiting}),
    }
    rows = list(tail_messages(TOPIC, batch_of(count), cursors))
    assert [row.batch_index for row in rows] == list(range(count))
    for index, row in enumerate(rows):
        assert (row.key, row.sequence_id, row.bytes) == (f"k{index}", 7 + index, 2)
        assert row.payload_sha == payload_sha(b"%02d" % index)
        assert set(row.acknowledged_by) == {*(["all"] if is_whole else []), *(["some"] if index in done else [])}


def test_entry_when_encrypted_then_is_one_row_with_the_reason() -> None:
    keys = [pb.EncryptionKeys(key="k", value=b"v")]
    (row,) = tail_messages(TOPIC, entry_of(b"secret", num_messages_in_batch=5, encryption_keys=keys), {})
    assert (row.messages, row.batch_index, row.bytes) == (5, -1, 6)
    assert row.reason is not None
    assert row.reason.startswith("encrypted")


def test_entry_when_it_cannot_be_unpacked_then_is_one_row_with_the_reason() -> None:
    (row,) = tail_messages(TOPIC, entry_of(b"?", compression=pb.ZLIB, uncompressed_size=100), {})
    assert row.reason
    assert row.payload_sha == payload_sha(b"?")


def test_chunks_when_listed_then_are_one_row_each_and_one_message_together() -> None:
    chunks = [entry_of(b"x", num_chunks_from_msg=3, chunk_id=number, uuid="u") for number in range(3)]
    rows = [row for chunk in chunks for row in tail_messages(TOPIC, chunk, {})]
    assert [row.messages for row in rows] == [1, 0, 0]
    assert rows[1].reason == "chunk 2 of 3"


def test_tombstone_when_listed_then_has_no_payload() -> None:
    (row,) = tail_messages(TOPIC, entry_of(b"", null_value=True, partition_key="k"), {})
    assert (row.payload_sha, row.bytes, row.key) == (None, 0, "k")


def test_row_when_written_then_has_the_members_of_the_list() -> None:
    row = TailMessage(TOPIC, Position(3, 4), -1, "p", 7, "k", 1000, 1, "00", ("s",))
    assert json.loads(json.dumps(row.to_json())) == {
        "topic": TOPIC,
        "position": "3:4",
        "batch_index": -1,
        "producer": "p",
        "sequence_id": 7,
        "key": "k",
        "publish_time": 1000,
        "bytes": 1,
        "payload_sha": "00",
        "acknowledged_by": ["s"],
        "messages": 1,
        "reason": None,
    }


KEYED = st.builds(KeyedMessage, POSITIONS, st.just(-1), st.integers(0, 9), st.sampled_from([None, "a", "b"]))
SIDE = st.dictionaries(st.sampled_from("abcdef"), KEYED)


@given(SIDE, SIDE)
def test_conflicts_when_keys_are_on_both_sides_then_are_these(
    tail: dict[str, KeyedMessage], local: dict[str, KeyedMessage]
) -> None:
    found = {each.key: each.to_json() for each in conflicts(TOPIC, tail, local)}
    assert found.keys() == tail.keys() & local.keys()
    for key, body in found.items():
        assert body["same_payload"] == (tail[key].payload_sha == local[key].payload_sha)
        assert (body["tail_position"], body["local_position"]) == (str(tail[key].position), str(local[key].position))


C = Position(5, 9)


@pytest.mark.parametrize(
    ("copied", "end", "first", "original", "copy", "state"),
    [
        (EARLIEST, Position(5, 3), None, None, None, Sameness.SAME),
        (C, Position(5, 12), C, "a", "a", Sameness.SAME),
        (C, Position(5, 12), C, "a", "b", Sameness.REBUILT),
        (C, Position(5, 12), C, "a", None, Sameness.UNPROVEN),
        (C, Position(5, 12), Position(5, 10), None, "a", Sameness.UNPROVEN),
        (C, C, None, None, "a", Sameness.UNPROVEN),
        (C, Position(5, 8), None, None, "a", Sameness.REBUILT),
        (C, EARLIEST, None, None, "a", Sameness.REBUILT),
        (C, Position(5, -1), None, None, "a", Sameness.REBUILT),
        (C, Position(6, -1), None, None, "a", Sameness.TRIMMED),
        (C, Position(7, 3), Position(7, 0), "x", "a", Sameness.TRIMMED),
    ],
)
def test_sameness_when_the_site_returns_then_compares_the_last_copy(
    copied: Position, end: Position, first: Position | None, original: str | None, copy: str | None, state: Sameness
) -> None:
    assert sameness(copied, end, first, original, copy) is state


def test_lost_positions_when_trimmed_or_rebuilt_then_are_named() -> None:
    first, end = Position(7, 0), Position(7, 3)
    assert lost_positions(TOPIC, Sameness.SAME, C, end, C, None) is None
    trimmed = lost_positions(TOPIC, Sameness.TRIMMED, C, end, first, None)
    assert trimmed is not None
    assert (trimmed.after, trimmed.upto) == (C, Position(7, -1))
    rebuilt = lost_positions(TOPIC, Sameness.REBUILT, C, Position(1, 1), None, Position(5, 20))
    assert rebuilt is not None
    assert rebuilt.to_json() == {"topic": TOPIC, "after": "5:9", "upto": "5:20", "state": "rebuilt"}


def write_before(state: Path, number: int, **members: Any) -> Path:
    directory = state / "incidents" / str(number)
    directory.mkdir(parents=True)
    body = {"epoch": number, "lost": "east", "to": "west", "topics": [{"topic": TOPIC, "copied": "3:4"}], **members}
    (directory / "before.json").write_text(json.dumps(body))
    return directory


def test_incident_when_none_is_named_then_is_the_newest(tmp_path: Path) -> None:
    with pytest.raises(IncidentError, match="has no incident: only a takeover leaves a tail"):
        incident_directory(tmp_path, None)
    directories = {epoch: write_before(tmp_path, epoch) for epoch in (9, 10)}
    assert incident_directory(tmp_path, None) == directories[10]
    assert incident_directory(tmp_path, 9) == directories[9]
    with pytest.raises(IncidentError, match="no incident of epoch 3: the epochs of takeovers are 9, 10"):
        incident_directory(tmp_path, 3)
    loaded = Incident.load(directories[9])
    assert (loaded.epoch, loaded.lost, loaded.to) == (9, "east", "west")
    assert [(str(last.topic), last.copied, last.first) for last in loaded.topics] == [(TOPIC, Position(3, 4), None)]


@pytest.mark.parametrize("members", [{"topics": [{"copied": "3:4"}]}, {"topics": None}, {"epoch": "x"}])
def test_incident_when_its_file_is_unusable_then_is_named(tmp_path: Path, members: dict[str, Any]) -> None:
    directory = write_before(tmp_path, 5, **members)
    with pytest.raises(IncidentError, match=r"before\.json is not the record of a takeover"):
        Incident.load(directory)
    with pytest.raises(IncidentError, match="No such file"):
        Incident.load(tmp_path)


def test_last_copy_when_nothing_was_copied_then_begins_at_the_first_entry() -> None:
    assert LastCopy.from_json({"topic": TOPIC, "copied": None}).copied == EARLIEST


def test_lines_when_writing_fails_then_the_file_of_before_stays(tmp_path: Path) -> None:
    path = tmp_path / "tail.jsonl"
    with json_lines(path) as write:
        write({"number": 1})
    with pytest.raises(ConnectionError):
        fail_within(path)
    assert path.read_text() == '{"number":1}\n'


def fail_within(path: Path) -> None:
    with json_lines(path) as write:
        write({"number": 2})
        raise ConnectionError
