"""Problems become findings that say where to look, one batch at a time."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import pyarrow as pa
import pytest

from interpulse.spark.lanes import pack_sequence
from interpulse.spark.verify.digests import ContentDigests, PositionDigests
from interpulse.spark.verify.findings import Findings
from interpulse.spark.verify.judging import Problem
from interpulse.wire import pulsar_api_pb2 as pb

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
