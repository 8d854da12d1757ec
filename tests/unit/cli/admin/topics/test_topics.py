"""``topics``, apart from subscriptions."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

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
