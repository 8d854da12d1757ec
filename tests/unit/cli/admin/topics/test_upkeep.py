"""The commands that keep topics in shape."""

from typing import Any

import pytest

from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin

ROOT = "/admin/v2/persistent/t/ns/a"


@pytest.mark.parametrize(
    ("arguments", "method", "target", "printed"),
    [
        ("unload t/ns/a", "PUT", f"{ROOT}/unload", ""),
        ("truncate t/ns/a", "DELETE", f"{ROOT}/truncate", ""),
        ("trim-topic t/ns/a", "POST", f"{ROOT}/trim", ""),
        ("compact t/ns/a", "PUT", f"{ROOT}/compaction", "Topic compaction requested for persistent://t/ns/a\n"),
    ],
)
def test_change_when_typed_then_is_asked_for(
    web: StubWeb, run_admin: RunAdmin, arguments: str, method: str, target: str, printed: str
) -> None:
    result = run_admin("topics", *arguments.split())
    assert (result.exit_code, result.output) == (0, printed)
    assert (web.last.method, web.last.target) == (method, target)


def test_terminate_when_done_then_prints_the_last_message(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("POST", f"{ROOT}/terminate", {"ledgerId": 1, "entryId": 2, "partitionIndex": -1})
    assert run_admin("topics", "terminate", "t/ns/a").stdout == "Topic successfully terminated at 1:2:-1\n"


def test_terminate_when_the_topic_is_partitioned_then_names_the_command_for_it(
    web: StubWeb, run_admin: RunAdmin
) -> None:
    web.answer("POST", f"{ROOT}/terminate", {"reason": "Termination of a partitioned topic is not allowed"}, status=405)
    refused = run_admin("topics", "terminate", "t/ns/a")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Error: Termination of a partitioned topic is not allowed (")
    assert "topics partitioned-terminate" in refused.stderr


def test_terminate_when_partitioned_then_prints_every_partition(web: StubWeb, run_admin: RunAdmin) -> None:
    ends = {"0": {"ledgerId": 1, "entryId": 2, "partitionIndex": 0}, "1": {"ledgerId": 3, "entryId": -1}}
    web.answer("POST", f"{ROOT}/terminate/partitions", ends)
    assert run_admin("topics", "partitioned-terminate", "t/ns/a").stdout == (
        "Topic persistent://t/ns/a-partition-0 successfully terminated at 1:2:0\n"
        "Topic persistent://t/ns/a-partition-1 successfully terminated at 3:-1:-1\n"
    )


@pytest.mark.parametrize(
    ("status", "printed"),
    [
        ("NOT_RUN", "Compaction has not been run for persistent://t/ns/a since broker startup\n"),
        ("RUNNING", "Compaction is currently running\n"),
        ("SUCCESS", "Compaction was a success\n"),
        ("PAUSED", "PAUSED\n"),
    ],
)
def test_compaction_when_asked_about_then_status_is_a_sentence(
    web: StubWeb, run_admin: RunAdmin, status: str, printed: str
) -> None:
    web.answer("GET", f"{ROOT}/compaction", {"status": status, "lastError": ""})
    result = run_admin("topics", "compaction-status", "t/ns/a")
    assert (result.exit_code, result.stdout) == (0, printed)


def test_compaction_when_it_failed_then_is_an_error_with_its_reason(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/compaction", {"status": "ERROR", "lastError": "disk full"})
    result = run_admin("topics", "compaction-status", "t/ns/a", "-w")
    assert (result.exit_code, result.stderr) == (1, "Error: Error compacting persistent://t/ns/a: disk full\n")


def test_compaction_when_awaited_then_asks_until_it_has_ended(
    web: StubWeb, run_admin: RunAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.cli.admin.topics.upkeep._ASK_AGAIN_SECONDS", 0.0)
    for status in ("RUNNING", "RUNNING", "SUCCESS"):
        web.answer("GET", f"{ROOT}/compaction", {"status": status, "lastError": ""})
    result = run_admin("topics", "compaction-status", "t/ns/a", "--wait-complete")
    assert (result.stdout, len(web.asked)) == ("Compaction was a success\n", 3)


def test_compaction_when_the_broker_cannot_then_says_so(web: StubWeb, run_admin: RunAdmin) -> None:
    answer: Any = {"reason": "this broker does not offer it"}
    web.answer("PUT", f"{ROOT}/compaction", answer, status=501)
    result = run_admin("topics", "compact", "t/ns/a")
    assert result.exit_code == 6
    assert result.stderr == "Error: this broker does not offer it (HTTP 501 Not Implemented)\n"
