"""Digests of entries and messages, and what counts as the content of an entry."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from interpulse.replication.copy import EntryMarker
from interpulse.spark.lanes import pack_sequence
from interpulse.spark.verify.digests import ContentDigests, Digest, Findings, PositionDigests, key_for_people
from interpulse.spark.verify.judging import Problem
from interpulse.wire import pulsar_api_pb2 as pb

NAME = "persistent://public/default/t-partition-1"
MARKER = EntryMarker("lane", "east")


def metadata(**given: Any) -> pb.MessageMetadata:
    return pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1, **given)


def row(raw: bytes, ledger: int = 3, entry: int = 4, payload: bytes = b"x") -> dict[str, Any]:
    return {"__topic": NAME, "__ledgerId": ledger, "__entryId": entry, "__metadata": raw, "__payload": payload}


def originals(*rows: dict[str, Any]) -> list[Digest]:
    return list(PositionDigests({NAME: "a"}, "east", "west", is_target=False).digests(iter(rows)))


def copies(*rows: dict[str, Any]) -> list[Digest]:
    return list(PositionDigests({NAME: "a"}, "east", "west", is_target=True).digests(iter(rows)))


def copy_of(original: pb.MessageMetadata, position: tuple[int, int] = (3, 4)) -> bytes:
    return MARKER.mark(original.SerializeToString(), original, position, pack_sequence(*position), b"2")


def test_copy_when_marked_then_has_group_and_content_of_its_original() -> None:
    own = metadata(partition_key="k", event_time=5, properties=[pb.KeyValue(key="n", value="1")])
    (here,), (there,) = originals(row(own.SerializeToString())), copies(row(copy_of(own), 9, 9))
    assert here[:5] == there[:5]
    assert (here.place, there.place, here.position) == ("3:4", "9:9", 3 << 32 | 4)


@pytest.mark.parametrize(
    "altered",
    [
        {"partition_key": "other"},
        {"partition_key": "k", "event_time": 5},
        {"partition_key": "k", "properties": [pb.KeyValue(key="n", value="1")]},
        {"partition_key": "k", "num_messages_in_batch": 2},
        {"partition_key": "k", "null_value": True},
    ],
    ids=lambda altered: ",".join(altered),
)
def test_content_when_an_attribute_differs_then_differs(altered: dict[str, Any]) -> None:
    (here,) = originals(row(metadata(partition_key="k").SerializeToString()))
    (there,) = copies(row(copy_of(metadata(**altered))))
    assert here.key == there.key
    assert here.content != there.content


def test_copies_when_one_stands_behind_a_later_one_then_it_is_overtaken() -> None:
    found = copies(*(row(copy_of(metadata(), (3, entry))) for entry in (1, 4, 2, 5)))
    assert [digest.overtaken for digest in found] == [False, False, True, False]


def test_entries_of_the_target_when_not_from_the_source_then_are_left_out() -> None:
    unmarked = metadata(replicated_from="east").SerializeToString()
    others = [metadata().SerializeToString(), metadata(replicated_from="north").SerializeToString()]
    found = copies(*map(row, others), row(unmarked), row(metadata(marker_type=1).SerializeToString()))
    assert [digest.position for digest in found] == [None]


def test_entries_of_the_source_when_not_to_be_copied_then_say_why() -> None:
    rows = [metadata(replicated_from="west"), metadata(replicate_to=["north"]), metadata(marker_type=1), metadata()]
    found = originals(*(row(each.SerializeToString()) for each in rows))
    assert [digest.skipped for digest in found] == ["replicated", "not-addressed", "marker", None]


def message(key: bytes | None, value: bytes | None, batch: int | None = None) -> dict[str, Any]:
    place = {"__topic": NAME, "__ledgerId": 3, "__entryId": 4, "__batchIndex": batch}
    return {"value": value, "__key": key, **place}


def test_messages_when_digested_then_are_matched_by_key_and_payload() -> None:
    rows = [message(b"k", b"x", 2), message(b"k", b"y"), message(None, b"x"), message(b"k", None), message(b"k", b"")]
    found = list(ContentDigests({NAME: "a"}).digests(iter(rows)))
    assert [digest.place for digest in found[:2]] == ["partition 1, 3:4:2", "partition 1, 3:4"]
    assert [key_for_people(digest.key) for digest in found] == ["k", "k", None, "k", "k"]
    assert len({digest.identity for digest in found}) == 4
    assert found[0].identity == found[2].identity


def test_digests_when_called_by_spark_then_give_batches_of_their_columns() -> None:
    rows = [row(metadata().SerializeToString(), entry=entry) for entry in range(3)]
    digests = PositionDigests({NAME: "a"}, "east", "west", is_target=False)
    (batch,) = digests(iter([pa.RecordBatch.from_pylist(rows)]))
    assert batch.schema.names == list(Digest._fields)
    assert batch.column("entry").to_pylist() == [0, 1, 2]
    assert list(digests(iter([]))) == []


@pytest.mark.parametrize("forwards", [True, False])
def test_entries_of_other_clusters_count_where_the_source_forwards_them(forwards: bool) -> None:
    """West gets through east what north published, under the name of east's lane."""
    here = EntryMarker("interpulse.p.north-->east.e0", "north").mark(b"", metadata(), (1, 2), 5)
    there = EntryMarker("interpulse.p.east-->west.e0", "east").mark(
        here, pb.MessageMetadata.FromString(here), (3, 4), 6
    )
    sides = (PositionDigests({NAME: "a"}, "east", "west", is_target, forwards) for is_target in (False, True))
    (original,), copied = (list(side.digests(iter([row(raw)]))) for side, raw in zip(sides, (here, there), strict=True))
    assert original.skipped == (None if forwards else "replicated")
    assert [each.key for each in copied] == ([original.key] if forwards else [])


TOPIC = "persistent://public/default/t"
RAW = pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1).SerializeToString()
ENTRY = {"__topic": TOPIC, "__ledgerId": 3, "__metadata": RAW, "__payload": b""}


def key_of(entry: int) -> bytes:
    """As the digest of an entry of ledger 3 has it."""
    (digest,) = PositionDigests({TOPIC: TOPIC}, "east", "west", is_target=False).digests(
        iter([ENTRY | {"__entryId": entry}])
    )
    return digest.key


def problems(*rows: tuple[Problem, bytes, str | None, str | None]) -> pa.RecordBatch:
    """Rows of problem, key, source_place and target_place."""
    columns = ("problem", "key", "source_place", "target_place")
    return pa.RecordBatch.from_pylist([{"topic": TOPIC, **dict(zip(columns, row, strict=True))} for row in rows])


@pytest.mark.parametrize(
    ("copied", "detail"),
    [
        ((), "the topic is empty"),
        ((1, 3), "between copies"),
        ((3, 9), "before the first copy"),
        ((0, 1), "behind the last copy: perhaps still on its way"),
    ],
)
def test_missing_entry_when_told_then_says_where_it_is_missing(copied: tuple[int, ...], detail: str) -> None:
    spans = {TOPIC: (pack_sequence(3, copied[0]), pack_sequence(3, copied[1]))} if copied else {}
    (found,) = Findings(spans)(iter([problems((Problem.MISSING, key_of(2), "3:2", None))]))
    assert found.to_pylist() == [
        {
            "problem": "missing",
            "topic": TOPIC,
            "key": None,
            "detail": detail,
            "source_place": "3:2",
            "target_place": None,
        }
    ]


def test_message_when_told_then_has_its_key() -> None:
    row = {"__topic": TOPIC, "__ledgerId": 3, "__entryId": 1, "__batchIndex": None, "__key": b"attic", "value": b"x"}
    (digest,) = ContentDigests({TOPIC: TOPIC}).digests(iter([row]))
    (found,) = Findings({})(iter([problems((Problem.EXTRA, digest.key, None, "3:1"))]))
    assert found.to_pylist()[0]["key"] == "attic"


def test_findings_when_there_are_many_then_one_batch_is_held_at_a_time() -> None:
    made: list[weakref.ref[pa.RecordBatch]] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(20):
            assert sum(each() is not None for each in made) <= 1
            batch = problems(*[(Problem.MISSING, key_of(2), "3:2", None)] * 100)
            made.append(weakref.ref(batch))
            yield batch

    assert sum(found.num_rows for found in Findings({})(batches())) == 2_000
