"""``namespaces``, apart from the policies."""

from typing import Any

import pytest

from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin, SentBy

ROOT = "/admin/v2/namespaces/t/ns"


@pytest.mark.parametrize(
    ("arguments", "method", "target", "body"),
    [
        ("create t/ns", "PUT", ROOT, None),
        ("create t/ns -c a,b -b 3", "PUT", ROOT, {"replication_clusters": ["a", "b"], "bundles": {"numBundles": 3}}),
        ("create t/ns --clusters a --clusters b", "PUT", ROOT, {"replication_clusters": ["a", "b"]}),
        ("delete t/ns", "DELETE", f"{ROOT}?force=false", None),
        ("delete t/ns --force", "DELETE", f"{ROOT}?force=true", None),
        ("set-clusters t/ns -c a,b", "POST", f"{ROOT}/replication?compareTopicPartitions=true", ["a", "b"]),
        (
            "set-clusters t/ns --clusters a --skipCompareTopicPartitions",
            "POST",
            f"{ROOT}/replication?compareTopicPartitions=false",
            ["a"],
        ),
        ("set-allowed-clusters t/ns -c a", "POST", f"{ROOT}/allowedClusters", ["a"]),
    ],
)
def test_change_when_typed_then_is_asked_for(
    sent_by: SentBy, arguments: str, method: str, target: str, body: Any
) -> None:
    assert sent_by("namespaces", *arguments.split()) == (method, target, body)


@pytest.mark.parametrize(
    ("arguments", "path", "answer", "printed"),
    [
        ("list t", "/admin/v2/namespaces/t", ["t/a", "t/b"], "t/a\nt/b\n"),
        ("policies t/ns", ROOT, {"deleted": False, "new": {}}, '{\n  "deleted" : false,\n  "new" : { }\n}\n'),
        ("get-clusters t/ns", f"{ROOT}/replication", ["a", "b"], "a\nb\n"),
        ("get-allowed-clusters t/ns", f"{ROOT}/allowedClusters", [], ""),
        (
            "replication-status t/ns",
            f"{ROOT}/replication/status",
            [{"topic": "x", "cluster": "west", "state": "HELD"}],
            "x -> west: HELD\n",
        ),
    ],
)
def test_question_when_typed_then_answer_is_printed(
    web: StubWeb, run_admin: RunAdmin, arguments: str, path: str, answer: Any, printed: str
) -> None:
    web.answer("GET", path, answer)
    result = run_admin("namespaces", *arguments.split())
    assert (result.exit_code, result.stdout) == (0, printed)


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ("", "mode=PERSISTENT&includeSystemTopic=false"),
        ("-m all", "mode=ALL&includeSystemTopic=false"),
        ("-m persistent -ist", "mode=PERSISTENT&includeSystemTopic=true"),
        ("--mode non_persistent", "mode=NON_PERSISTENT&includeSystemTopic=false"),
    ],
)
def test_topics_when_mode_is_given_then_is_asked_for(
    web: StubWeb, run_admin: RunAdmin, options: str, query: str
) -> None:
    web.answer("GET", f"{ROOT}/topics", ["persistent://t/ns/x"])
    assert run_admin("namespaces", "topics", "t/ns", *options.split()).stdout == "persistent://t/ns/x\n"
    assert web.last.target == f"{ROOT}/topics?{query}"


def test_namespace_when_malformed_then_nothing_is_asked(web: StubWeb, run_admin: RunAdmin) -> None:
    result = run_admin("namespaces", "policies", "t")
    assert result.exit_code == 2
    assert "expected tenant/namespace" in result.stderr
    assert web.asked == []
