"""``namespaces``, apart from the policies."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from interpulse.cli.admin.admin import admin
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
        ("update-migration-state t/ns --migrated", "POST", f"{ROOT}/migration", True),
        ("update-migration-state t/ns", "POST", f"{ROOT}/migration", False),
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


BUNDLE = "0x00000000_0x40000000"


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ("", "/unload"),
        ("-b 0x00000000_0x40000000", "/0x00000000_0x40000000/unload"),
        ("-b 0x0_0x4 -d b:8080", "/0x0_0x4/unload?destinationBroker=b%3A8080"),
    ],
)
def test_namespace_when_unloaded_then_whole_or_by_bundle(
    web: StubWeb, run_admin: RunAdmin, options: str, target: str
) -> None:
    result = run_admin("namespaces", "unload", "t/ns", *options.split())
    assert (result.exit_code, web.last.method) == (0, "PUT")
    assert web.last.target == f"/admin/v2/namespaces/t/ns{target}"


@pytest.mark.parametrize(("options", "words"), [("-b half", "is not a bundle"), ("-d b:1", "needs --bundle")])
def test_unload_when_arguments_do_not_fit_then_nothing_is_asked(
    web: StubWeb, run_admin: RunAdmin, options: str, words: str
) -> None:
    result = run_admin("namespaces", "unload", "t/ns", *options.split())
    assert (result.exit_code, web.asked) == (2, [])
    assert words in result.stderr


def test_bundles_when_asked_then_are_printed(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/bundles", {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1})
    printed = '{\n  "boundaries" : [ "0x00000000", "0xffffffff" ],\n  "numBundles" : 1\n}\n'
    assert run_admin("namespaces", "bundles", "t/ns").stdout == printed


@pytest.mark.parametrize(
    ("options", "target", "body"),
    [
        (f"-b {BUNDLE}", f"{BUNDLE}/split?unload=false", None),
        ("-bt LARGEST -u", "LARGEST/split?unload=true", None),
        (
            f"--bundle {BUNDLE} --unload --split-algorithm-name specified_positions_divide --split-boundaries 1,2",
            f"{BUNDLE}/split?unload=true&splitAlgorithmName=specified_positions_divide",
            [1, 2],
        ),
    ],
)
def test_bundle_when_split_then_is_asked_for(sent_by: SentBy, options: str, target: str, body: Any) -> None:
    assert sent_by("namespaces", "split-bundle", "t/ns", *options.split()) == ("PUT", f"{ROOT}/{target}", body)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "either --bundle or --bundle-type"),
        (f"-b {BUNDLE} -bt HOT", "either --bundle or --bundle-type"),
        ("-bt SMALLEST", "SMALLEST"),
        (f"-b {BUNDLE} -sb 1,x", "not a list of integers"),
    ],
)
def test_split_when_arguments_do_not_fit_then_nothing_is_asked(
    web: StubWeb, run_admin: RunAdmin, options: str, words: str
) -> None:
    result = run_admin("namespaces", "split-bundle", "t/ns", *options.split())
    assert (result.exit_code, web.asked) == (2, [])
    assert words in result.stderr


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("clear-backlog t/ns --force", "clearBacklog"),
        ("clear-backlog t/ns -force -s a/b", "clearBacklog/a%2Fb"),
        (f"clear-backlog t/ns -force -b {BUNDLE}", f"{BUNDLE}/clearBacklog"),
        (f"clear-backlog t/ns -force -b {BUNDLE} --sub s", f"{BUNDLE}/clearBacklog/s"),
        ("unsubscribe t/ns -s a/b", "unsubscribe/a%2Fb"),
        (f"unsubscribe t/ns -s s -b {BUNDLE}", f"{BUNDLE}/unsubscribe/s"),
    ],
)
def test_subscriptions_of_all_topics_when_changed_then_is_asked_for(sent_by: SentBy, command: str, target: str) -> None:
    assert sent_by("namespaces", *command.split()) == ("POST", f"{ROOT}/{target}", None)


@pytest.mark.parametrize(("answer", "asked"), [("y\n", 1), ("n\n", 0)])
def test_backlog_when_not_forced_then_it_is_cleared_only_if_confirmed(web: StubWeb, answer: str, asked: int) -> None:
    arguments = ("namespaces", "clear-backlog", "t/ns")
    result = CliRunner().invoke(admin, arguments, input=answer, catch_exceptions=False)
    assert (result.exit_code, len(web.asked)) == (0, asked)
    assert "Are you sure you want to clear the backlog?" in result.output


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("set-property t/ns -k a -v b/c", ("PUT", f"{ROOT}/property/a/b%2Fc", None)),
        ("set-properties t/ns -p a=b,c=d -p e=", ("PUT", f"{ROOT}/properties", {"a": "b", "c": "d", "e": ""})),
        ("clear-properties t/ns", ("DELETE", f"{ROOT}/properties", None)),
    ],
)
def test_properties_when_changed_then_asks_for_it(sent_by: SentBy, typed: str, sent: tuple[str, str, object]) -> None:
    assert sent_by("namespaces", *typed.split()) == sent


def test_properties_when_asked_for_then_are_printed(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/properties", {"a": "b", "c": ""})
    web.answer_raw("GET", f"{ROOT}/property/a", b"007", content_type="application/json")
    web.answer_raw("GET", f"{ROOT}/property/none", b"")
    assert run_admin("namespaces", "get-properties", "t/ns").stdout == "a    b\nc    \n"
    assert run_admin("namespaces", "get-property", "t/ns", "-k", "a").stdout == "007\n"
    assert run_admin("namespaces", "get-property", "t/ns", "-k", "none").stdout == "null\n"
    assert run_admin("namespaces", "remove-property", "t/ns", "--key", "a").stdout == "007\n"
    assert (web.last.method, web.last.target) == ("DELETE", f"{ROOT}/property/a")


def test_failover_role_when_set_then_prints_the_positions(web: StubWeb, run_admin: RunAdmin) -> None:
    answer = {"role": "moved;epoch=4;url=pulsar://w:1", "positions": {"persistent://t/ns/x": "1:2"}}
    web.answer("POST", f"{ROOT}/failover", answer)
    options = ("--role", "moved", "--epoch", "4", "--url", "pulsar://w:1", "--subscriptions-ready")
    printed = run_admin("namespaces", "set-failover-role", "t/ns", *options)
    assert json.loads(printed.stdout) == answer
    assert web.last.body == {"role": "moved", "epoch": 4, "url": "pulsar://w:1", "subscriptionsReady": True}
    closed = ("--role", "active", "--epoch", "5", "--closed-to", "east")
    run_admin("namespaces", "set-failover-role", "t/ns", *closed)
    assert web.last.body == {"role": "active", "epoch": 5, "closedTo": "east", "subscriptionsReady": False}
    run_admin("namespaces", "set-failover-role", "t/ns", *closed[:4], "--hold-consumers-for", "9")
    assert web.last.body == {"role": "active", "epoch": 5, "holdConsumersFor": 9, "subscriptionsReady": False}
    web.answer("GET", f"{ROOT}/failover", {"role": "active;epoch=0", "epoch": 0, "since": None})
    assert '"role" : "active;epoch=0"' in run_admin("namespaces", "get-failover-role", "t/ns").stdout
