"""``topics``, apart from subscriptions."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from interpulse.cli.admin.topics.topics import topics
from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin, SentBy

ROOT = "/admin/v2/persistent/t/ns/a"
STATS = "getPreciseBacklog={}&subscriptionBacklogSize=true&getEarliestTimeInBacklog={}"


@pytest.mark.parametrize(
    ("arguments", "method", "target", "body"),
    [
        ("create t/ns/a", "PUT", ROOT, {}),
        ("create persistent://t/ns/a -m k=v,x=y", "PUT", ROOT, {"k": "v", "x": "y"}),
        ("create non-persistent://t/ns/a", "PUT", "/admin/v2/non-persistent/t/ns/a", {}),
        ("create a", "PUT", "/admin/v2/persistent/public/default/a", {}),
        ("delete t/ns/a -f -d", "DELETE", f"{ROOT}?force=true&deleteSchema=true", None),
        ("delete-partitioned-topic t/ns/a -d", "DELETE", f"{ROOT}/partitions?force=false&deleteSchema=true", None),
        ("update-properties t/ns/a -p a=b -p c=d", "PUT", f"{ROOT}/properties", {"a": "b", "c": "d"}),
        ("remove-properties t/ns/a -k a", "DELETE", f"{ROOT}/properties?key=a", None),
        ("create-partitioned-topic t/ns/a -p 3", "PUT", f"{ROOT}/partitions?createLocalTopicOnly=false", 3),
        (
            "create-partitioned-topic t/ns/a --partitions 3 --metadata k=v",
            "PUT",
            f"{ROOT}/partitions?createLocalTopicOnly=false",
            {"partitions": 3, "properties": {"k": "v"}},
        ),
        (
            "update-partitioned-topic t/ns/a -p 4 -ulo -f",
            "POST",
            f"{ROOT}/partitions?updateLocalTopicOnly=true&force=true",
            4,
        ),
        ("create-missed-partitions t/ns/a", "POST", f"{ROOT}/createMissedPartitions", None),
        ("delete t/ns/a", "DELETE", f"{ROOT}?force=false&deleteSchema=true", None),
        ("delete-partitioned-topic t/ns/a -f", "DELETE", f"{ROOT}/partitions?force=true&deleteSchema=true", None),
        ("set-replication-clusters t/ns/a -c x,y", "POST", f"{ROOT}/replication", ["x", "y"]),
        ("remove-replication-clusters t/ns/a", "DELETE", f"{ROOT}/replication", None),
    ],
)
def test_change_when_typed_then_is_asked_for(
    sent_by: SentBy, arguments: str, method: str, target: str, body: Any
) -> None:
    assert sent_by("topics", *arguments.split()) == (method, target, body)


@pytest.mark.parametrize(
    ("arguments", "target", "answer", "printed"),
    [
        (
            "get-partitioned-topic-metadata t/ns/a",
            f"{ROOT}/partitions?checkAllowAutoCreation=false",
            {"partitions": 2, "deleted": False},
            '{\n  "partitions" : 2,\n  "deleted" : false\n}\n',
        ),
        ("get-properties t/ns/a", f"{ROOT}/properties", {"a": "b", "c": "d"}, "a    b\nc    d\n"),
        ("get-properties t/ns/a", f"{ROOT}/properties", None, ""),
        ("partitioned-stats-internal t/ns/a", f"{ROOT}/partitioned-internalStats", {}, "{ }\n"),
        ("stats t/ns/a -sbs", f"{ROOT}/stats?{STATS.format('false', 'false')}", {}, "{ }\n"),
        ("stats t/ns/a", f"{ROOT}/stats?{STATS.format('false', 'false')}", {"x": {}}, '{\n  "x" : { }\n}\n'),
        ("stats t/ns/a -gpb -etb", f"{ROOT}/stats?{STATS.format('true', 'true')}", {}, "{ }\n"),
        (
            "partitioned-stats t/ns/a --per-partition",
            f"{ROOT}/partitioned-stats?{STATS.format('false', 'false')}&perPartition=true",
            {},
            "{ }\n",
        ),
        (
            "stats t/ns/a --exclude-publishers --exclude-consumers",
            f"{ROOT}/stats?{STATS.format('false', 'false')}&excludePublishers=true&excludeConsumers=true",
            {},
            "{ }\n",
        ),
        (
            "partitioned-stats t/ns/a --exclude-consumers",
            f"{ROOT}/partitioned-stats?{STATS.format('false', 'false')}&perPartition=false&excludeConsumers=true",
            {},
            "{ }\n",
        ),
        ("stats-internal t/ns/a -m", f"{ROOT}/internalStats?metadata=true", {}, "{ }\n"),
        ("get-replication-clusters t/ns/a -ap", f"{ROOT}/replication?applied=true", ["x"], '[ "x" ]\n'),
        ("get-replication-clusters t/ns/a", f"{ROOT}/replication?applied=false", None, "null\n"),
        ("replication-status t/ns/a", f"{ROOT}/replication/status", [], "Nothing is replicated from here.\n"),
    ],
)
def test_question_when_typed_then_answer_is_printed(
    web: StubWeb, run_admin: RunAdmin, arguments: str, target: str, answer: Any, printed: str
) -> None:
    web.answer("GET", target.partition("?")[0], answer)
    result = run_admin("topics", *arguments.split())
    assert (result.exit_code, result.stdout, web.last.target) == (0, printed, target)


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        ("", "persistent://t/ns/a\nnon-persistent://t/ns/b\n"),
        ("-td persistent", "persistent://t/ns/a\n"),
        ("--topic-domain non_persistent", "non-persistent://t/ns/b\n"),
    ],
)
def test_list_when_domain_is_given_then_only_that_is_listed(
    web: StubWeb, run_admin: RunAdmin, options: str, printed: str
) -> None:
    web.answer("GET", "/admin/v2/persistent/t/ns", ["persistent://t/ns/a"])
    web.answer("GET", "/admin/v2/non-persistent/t/ns", ["non-persistent://t/ns/b"])
    assert run_admin("topics", "list", "t/ns", *options.split()).stdout == printed


def test_list_when_properties_are_given_then_the_broker_is_asked_for_topics_that_have_them(
    web: StubWeb, run_admin: RunAdmin
) -> None:
    web.answer("GET", "/admin/v2/persistent/t/ns", ["persistent://t/ns/a"])
    run_admin("topics", "list", "t/ns", "-td", "persistent", "-p", "env=prod,team=a", "--properties", "k=v")
    assert parse_qs(web.last.target.partition("?")[2])["properties"] == ["env=prod,team=a,k=v"]


def test_partitioned_list_when_system_topics_are_wanted_then_says_so(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", "/admin/v2/persistent/t/ns/partitioned", ["persistent://t/ns/p"])
    web.answer("GET", "/admin/v2/non-persistent/t/ns/partitioned", [])
    assert run_admin("topics", "list-partitioned-topics", "t/ns", "-ist").stdout == "persistent://t/ns/p\n"
    assert web.last.target.endswith("?includeSystemTopic=true")


@pytest.mark.parametrize("name", ["a/b", "persistent://a/b", "other://t/ns/a", "persistent://t/c/ns/a"])
def test_topic_when_malformed_then_nothing_is_asked(web: StubWeb, run_admin: RunAdmin, name: str) -> None:
    result = run_admin("topics", "stats", name)
    assert (result.exit_code, web.asked) == (2, [])
    assert "Invalid topic name" in result.stderr


def test_topics_when_deleted_by_expression_then_those_that_match_go_one_by_one(
    web: StubWeb, run_admin: RunAdmin
) -> None:
    names = [f"persistent://t/ns/{name}" for name in ("a", "b", "a2")]
    web.answer("GET", "/admin/v2/persistent/t/ns", names)
    result = run_admin("topics", "delete", "-r", "persistent://t/ns/a.?", "-f")
    assert (result.exit_code, result.stderr) == (0, f"{names[0]} deleted\n{names[2]} deleted\n")
    deleted = [asked.target.partition("?")[0] for asked in web.asked if asked.method == "DELETE"]
    assert deleted == ["/admin/v2/persistent/t/ns/a", "/admin/v2/persistent/t/ns/a2"]


def test_topics_when_deleted_from_a_file_then_all_are_tried(web: StubWeb, run_admin: RunAdmin, tmp_path: Path) -> None:
    file = tmp_path / "topics"
    file.write_text("persistent://t/ns/a\n\nt/ns/b\n")
    web.answer("DELETE", ROOT, {"reason": "in use"}, status=412)
    result = run_admin("topics", "delete", "--from-file", f"path://{file}")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0].startswith("persistent://t/ns/a: in use")
    assert result.stderr.splitlines()[1:] == [
        "persistent://t/ns/b deleted",
        "Error: 1 of 2 topics could not be deleted",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-r", "t/ns/a"], "has not the form persistent://tenant/namespace/expression"),
        (["-r", "persistent://t/ns/("], "is not a regular expression for topics"),
        (["--from-file", "/nowhere"], "/nowhere cannot be read"),
        (["--from-file", "-r", "x"], "Give one of -r and --from-file"),
        (["a/b"], "Invalid topic name"),
    ],
)
def test_topics_when_deleted_wrongly_then_says_why(arguments: list[str], words: str, run_admin: RunAdmin) -> None:
    result = run_admin("topics", "delete", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_commands_when_they_are_no_policies_then_stand_in_one_section_each(
    run_admin: RunAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    help_lines = run_admin("topics", "--help").stdout.splitlines()
    placed = [name for names in topics.sections.values() for name in names]
    assert len(placed) == len(set(placed))
    assert set(placed) <= set(topics.commands)
    assert "Commands:" not in help_lines
    headings = [line.removesuffix(":") for line in help_lines if line and not line.startswith(" ")]
    assert headings[2:] == [*topics.sections, "Policies (put one of the words in front)"]
    assert max(map(len, help_lines)) <= 80


@pytest.mark.parametrize(
    ("arguments", "method", "target", "printed"),
    [
        ("unload t/ns/a", "PUT", f"{ROOT}/unload", ""),
        ("truncate t/ns/a", "DELETE", f"{ROOT}/truncate", ""),
        ("trim-topic t/ns/a", "POST", f"{ROOT}/trim", ""),
        ("compact t/ns/a", "PUT", f"{ROOT}/compaction", "Topic compaction requested for persistent://t/ns/a\n"),
    ],
)
def test_upkeep_is_asked_for(
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
    monkeypatch.setattr("interpulse.cli.admin.topics.topics._ASK_AGAIN_SECONDS", 0.0)
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
