"""The journal of an operation, also one that a kill cut off."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from interpulse.failover.journal import Journal, Operation, path_of, replace_file
from interpulse.failover.outcome import OperationFailed, Outcome


def test_journal_when_read_again_then_has_the_operation_and_its_evidence(tmp_path: Path, operation: Operation) -> None:
    journal = Journal.create(tmp_path, operation)
    journal.begin("fence", "t1")
    journal.done("fence", "t2", {"closedProducers": 3})
    again = Journal.unfinished(tmp_path)
    assert again is not None
    assert again.operation == operation
    assert again.evidence_of("fence") == {"closedProducers": 3}
    assert again.evidence_of("drain") is None
    assert again.started_steps == {"fence"}
    assert (again.last["event"], again.outcome) == ("done", None)
    again.end("DONE", "t3")
    assert Journal.unfinished(tmp_path) is None


def test_journal_when_killed_at_any_byte_then_goes_on_behind_the_last_complete_line(
    tmp_path: Path, operation: Operation
) -> None:
    journal = Journal.create(tmp_path, operation)
    journal.begin("fence", "t1")
    journal.done("fence", "t2", {"text": "zwölf"})
    path = tmp_path / "operations" / f"{operation.id}.jsonl"
    content = path.read_bytes()
    first = content.index(b"\n") + 1
    for size in range(first, len(content) + 1):
        path.write_bytes(content[:size])
        journal = Journal(path)
        assert journal.operation == operation
        journal.begin("drain", "t3")
        *kept, last = [json.loads(line)["event"] for line in path.read_text().splitlines()]
        assert (kept, last) == (["operation", "begin", "done"][: content[:size].count(b"\n")], "begin")


def test_unfinished_when_there_are_several_then_is_the_newest(tmp_path: Path, operation: Operation) -> None:
    for number in range(3):
        made = Journal.create(tmp_path, replace(operation, id=f"2026113{number}T210000-ab12cd", epoch=number))
        made.write_evidence("fence", [{"topic": "a", "position": "1:2"}])
    newest = Journal.unfinished(tmp_path)
    assert newest is not None
    assert newest.operation.epoch == 2
    assert Journal.unfinished(tmp_path / "nothing") is None


def test_journal_when_of_another_machine_then_has_the_step_of_its_record(tmp_path: Path, operation: Operation) -> None:
    record = {**asdict(operation), "step": "drain", "at": "2026-11-30T21:00:01.000Z"}
    Journal.taken_over(tmp_path, record)
    again = Journal.unfinished(tmp_path)
    assert again is not None
    assert (again.operation, again.started_steps, again.last["at"]) == (operation, {"drain"}, record["at"])
    assert Journal.taken_over(tmp_path / "fresh", asdict(operation)).started_steps == frozenset()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"event": "done", "step"', r"no JSON, .*"),
        (b"\xff", r"no JSON, .*"),
        (b"[]", "none of the events operation, begin, done, end"),
        (b'{"event": "pause"}', "none of the events operation, begin, done, end"),
        (b'{"event": "done", "step": "fence"}', "the event done has no at, evidence"),
    ],
)
def test_journal_when_a_line_is_broken_then_is_named_and_hinders_only_its_operation(
    tmp_path: Path, operation: Operation, line: bytes, reason: str
) -> None:
    Journal.create(tmp_path, operation)
    broken = Journal.create(tmp_path, replace(operation, id="20991130T210000-ab12cd"))
    path = path_of(tmp_path, broken.operation.id)
    path.write_bytes(path.read_bytes() + line + b"\n")
    for read in (lambda: Journal(path), lambda: Journal.taken_over(tmp_path, asdict(broken.operation))):
        with pytest.raises(
            OperationFailed, match=rf"20991130T210000-ab12cd\.jsonl line 2 .*{reason}.* Move the file"
        ) as error:
            read()
        assert error.value.outcome is Outcome.REFUSED
    other = Journal.unfinished(tmp_path)
    assert other is not None
    assert other.operation == operation


@pytest.mark.parametrize("content", [b"", b'{"event": "operation", "id": "x"}\n', b'{"event": "operation"'])
def test_journal_when_it_has_no_operation_then_its_first_line_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(OperationFailed, match=r"x\.jsonl line 1 .*not the record of an operation"):
        Journal(path)


def test_evidence_when_written_again_then_is_replaced_as_a_whole(tmp_path: Path, operation: Operation) -> None:
    journal = Journal.create(tmp_path, operation)
    journal.write_evidence("fence", [{"topic": "a"}, {"topic": "b"}])
    journal.write_evidence("fence", [{"topic": "c"}])
    path = tmp_path / "operations" / f"{operation.id}.fence.jsonl"
    assert path.read_text() == '{"topic": "c"}\n'
    assert sorted(each.name for each in path.parent.iterdir()) == [path.name, f"{operation.id}.jsonl"]


def test_file_when_it_cannot_be_written_then_the_one_before_stays(tmp_path: Path) -> None:
    path = tmp_path / "url.json"
    replace_file(path, "old")
    with pytest.raises(OSError, match="No such file"):
        replace_file(tmp_path / "absent" / "url.json", "new")
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    "body", [{}, {"id": "a"}, {"id": "a", "kind": "b", "to": "c", "began": "", "holder": "", "epoch": "x"}]
)
def test_operation_when_its_record_is_incomplete_then_is_refused(body: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="not the record of an operation"):
        Operation.from_json(body)
