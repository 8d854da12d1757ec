"""Groups are judged whole, also where Spark cuts its batches, and findings say where to look."""

from __future__ import annotations

import pyarrow as pa
import pytest

from interpulse.spark.lanes import pack_sequence
from interpulse.spark.verify.digests import PositionDigests
from interpulse.spark.verify.judging import JUDGED_COLUMNS, SOURCE, TARGET, Judge
from interpulse.wire import pulsar_api_pb2 as pb

TOPIC = "persistent://public/default/t"
RAW = pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1).SerializeToString()


def key_of(entry: int) -> bytes:
    """As the digest of an entry of ledger 3 has it."""
    row = {"__topic": TOPIC, "__ledgerId": 3, "__entryId": entry, "__metadata": RAW, "__payload": b""}
    (digest,) = PositionDigests({TOPIC: TOPIC}, "east", "west", is_target=False).digests(iter([row]))
    return digest.key


def batch(*rows: tuple[int, int, bytes]) -> pa.RecordBatch:
    """Rows of (entry, side, content)."""
    values = [(TOPIC, key_of(entry), side, b"i", content, f"3:{entry}", False) for entry, side, content in rows]
    return pa.RecordBatch.from_pylist([dict(zip(JUDGED_COLUMNS, each, strict=True)) for each in values])


def test_group_when_cut_by_the_end_of_a_batch_then_is_judged_whole() -> None:
    first, second = batch((1, SOURCE, b"x")), batch((1, TARGET, b"x"), (2, SOURCE, b"x"), (2, TARGET, b"y"))
    (found,) = Judge({}).findings(iter([first, second]))
    assert found[:5] == ("different", TOPIC, None, "3:2", "3:2")


@pytest.mark.parametrize(
    ("copied", "detail"),
    [
        ((), "nothing of the topic is there"),
        ((1, 3), "between copies"),
        ((3, 9), "before the first copy"),
        ((0, 1), "behind the last copy: perhaps still on its way"),
    ],
)
def test_missing_entry_when_found_then_says_where_it_is_missing(copied: tuple[int, ...], detail: str) -> None:
    spans = {TOPIC: (pack_sequence(3, copied[0]), pack_sequence(3, copied[1]))} if copied else {}
    (found,) = Judge(spans).findings(iter([batch((2, SOURCE, b"x"))]))
    assert (found.problem, found.detail) == ("missing", detail)


def test_judge_when_called_by_spark_then_gives_text_columns() -> None:
    (table,) = Judge({})(iter([batch((2, TARGET, b"x"))]))
    assert table.to_pylist()[0]["problem"] == "extra"
    (empty,) = Judge({})(iter([]))
    assert empty.num_rows == 0
