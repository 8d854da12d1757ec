"""Where a sink keeps the state of its lanes, and what it asks for."""

import pytest
from pyspark.sql.types import BinaryType

from interpulse.client.outages import ResolvedOutage
from interpulse.model.ids import Position
from interpulse.replication.position_runs import Run
from interpulse.spark.lanes import LaneReport, LaneState
from interpulse.spark.options.option import OptionError
from interpulse.spark.state_files import LaneFiles
from interpulse.spark.writing.writer import PulsarStreamWriter, WrittenMessage
from tests.support.spark_source import columns_of, source_of

GIVEN = {"service.url": "pulsar://x:1", "topic": "t", "deliveryGuarantee": "exactly-once"}


def writer_of(**options: str) -> PulsarStreamWriter:
    writer = source_of({**GIVEN, **options}).streamWriter(schema=columns_of(value=BinaryType()), overwrite=False)
    assert isinstance(writer, PulsarStreamWriter)
    return writer


@pytest.mark.parametrize("form", ["{}", "{}/", "file:{}", "file://{}"])
def test_lane_states_lie_in_the_checkpoint(tmp_path, form):
    writer = writer_of(checkpointLocation=form.format(tmp_path))
    writer.commit([WrittenMessage([LaneReport("t", LaneState(7, Position(1, 2)), entries=1, key="t")])], 0)
    assert LaneFiles(str(tmp_path / "interpulse")).newest() == (0, {"t": LaneState(7, Position(1, 2))})


def test_lane_that_several_tasks_used_in_turn_keeps_its_highest_id(tmp_path):
    reports = [LaneReport("t", LaneState(each, Position(1, each)), entries=1, key="t\napp") for each in (9, 7)]
    writer_of(checkpointLocation=str(tmp_path)).commit([WrittenMessage([each]) for each in reports], 0)
    assert LaneFiles(str(tmp_path / "interpulse")).newest()[1] == {"t\napp": LaneState(9, Position(1, 9))}
    assert (LaneFiles(str(tmp_path / "interpulse")).summary_of(0) or {})["topics"] == {"t": [2, 0, 0]}


def test_positions_of_copies_are_written_by_the_commit(tmp_path):
    runs = {topic: [Run(Position(1, 2), Position(3, number), 4)] for number, topic in enumerate("ab")}
    reports = [LaneReport(topic, runs=runs.get(topic, ())) for topic in "abc"]
    writer_of(checkpointLocation=str(tmp_path)).commit([WrittenMessage(reports)], 0)
    assert LaneFiles(str(tmp_path / "interpulse")).positions.read_new() == runs


def test_what_healed_within_tasks_is_told_with_reason_and_remedy(tmp_path, caplog):
    gone = ResolvedOutage("pulsar://who:secret@a:1", "no answer within 3 s", 1, 2.5)
    writer_of(checkpointLocation=str(tmp_path)).commit([WrittenMessage([gone]), None, WrittenMessage([gone])], 0)
    (healed,) = (LaneFiles(str(tmp_path / "interpulse")).summary_of(0) or {})["healed"]
    assert (healed["place"], healed["count"], healed["seconds"]) == ("pulsar://***@a:1", 2, 5.0)
    assert healed["remedy"].startswith("start the cluster")
    assert "failed and healed within a task place=pulsar://***@a:1 count=2 seconds=5.0" in caplog.text


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, '.option("checkpointLocation", "/a/directory/that/stays")'),
        ({"checkpointLocation": "s3a://bucket/c"}, '.option("statePath", "/a/directory/that/stays")'),
        ({"checkpointLocation": "hdfs://name:8020/c"}, '.option("statePath", "/a/directory/that/stays")'),
    ],
)
def test_what_is_missing_is_asked_for_with_the_line_to_add(options, line):
    with pytest.raises(OptionError) as asked:
        writer_of(**options)
    assert str(asked.value).endswith(line)
