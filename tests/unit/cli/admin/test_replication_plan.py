"""Plans on the command line: how they read, and what a broker that knows no plans is asked."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.cli.admin.replication_plan import plan_as_text
from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin

ROOT = "/admin/v2/namespaces/t/ns"
RUNTIME = "/admin/v2/brokers/configuration/runtime"
ADJUST = "--adjust-namespace-level-policies-automatically"


def document(outcome: str, **parts: Any) -> dict[str, Any]:
    west = {"cluster": "b", "checked": True, "skipReason": None, "changes": [], "conflicts": [], "info": []}
    whole = {key: parts.pop(key) for key in ("applied", "reason", "requestedClusters", "clusters") if key in parts}
    return {
        "namespace": "t/ns",
        "localCluster": "a",
        "requestedClusters": ["a", "b"],
        "outcome": outcome,
        "clusters": [west | parts],
    } | whole


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ("--preview", "adjustNamespaceLevelPoliciesAutomatically=true&preview=true"),
        (ADJUST, "adjustNamespaceLevelPoliciesAutomatically=true&preview=false"),
        (f"{ADJUST} --preview", "adjustNamespaceLevelPoliciesAutomatically=true&preview=true"),
        (f"{ADJUST} --plan-digest ab", "adjustNamespaceLevelPoliciesAutomatically=true&preview=false&planDigest=ab"),
    ],
)
def test_broker_that_makes_plans_is_asked_for_one(web: StubWeb, run_admin: RunAdmin, options: str, query: str) -> None:
    web.answer("GET", RUNTIME, {"supportsReplicationPreview": "true"})
    web.answer("POST", f"{ROOT}/replication", document("READY"))
    result = run_admin("namespaces", "set-clusters", "t/ns", "-c", "a,b", *options.split())
    assert (result.exit_code, result.output) == (0, "t/ns can be replicated to a, b as it is.\n")
    assert (web.last.target, web.last.body) == (f"{ROOT}/replication?{query}", ["a", "b"])


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (document("NEEDS_ADJUSTMENT"), 200, 1),
        (document("CONFLICT"), 200, 3),
        (document("CONFLICT", applied=False), 409, 3),
        (document("NEEDS_ADJUSTMENT", applied=False, reason="disk full"), 500, 1),
        (document("NEEDS_ADJUSTMENT", applied=True), 200, 0),
        (document("READY", applied=False, reason="disk full"), 500, 1),
        ({"reason": "Invalid cluster id: b"}, 403, 1),
    ],
)
def test_exit_code_says_what_is_left_to_do(
    web: StubWeb, run_admin: RunAdmin, answer: dict[str, Any], status: int, code: int
) -> None:
    web.answer("GET", RUNTIME, {"supportsReplicationPreview": "true"})
    web.answer("POST", f"{ROOT}/replication", answer, status=status)
    result = run_admin("namespaces", "set-clusters", "t/ns", "-c", "a,b", ADJUST)
    assert result.exit_code == code
    assert answer.get("reason", "") in result.output


def test_who_may_not_read_settings_has_a_plan_of_a_broker_of_ours(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", RUNTIME, {"reason": "for super users"}, status=401)
    web.answer("GET", f"{ROOT}/replication/topics", {})
    web.answer("POST", f"{ROOT}/replication", document("READY"))
    assert run_admin("namespaces", "set-clusters", "t/ns", "-c", "a,b", "--preview").exit_code == 0


@pytest.mark.parametrize("status", [401, 403])
def test_who_may_not_read_settings_of_another_broker_is_told_what_they_are_for(
    web: StubWeb, run_admin: RunAdmin, status: int
) -> None:
    web.answer("GET", RUNTIME, {"reason": "for super users"}, status=status)
    web.answer_raw("GET", f"{ROOT}/replication/topics", b"<html/>", status=404, content_type="text/html")
    result = run_admin("namespaces", "set-clusters", "t/ns", "-c", "a,b", "--preview")
    assert (result.exit_code, "needs the runtime configuration" in result.output) == (4, True)
    assert {each.method for each in web.asked} == {"GET"}


@pytest.mark.parametrize("options", ["--preview", ADJUST])
def test_broker_that_would_ignore_the_parameters_never_gets_them(
    web: StubWeb, run_admin: RunAdmin, options: str
) -> None:
    web.answer("GET", RUNTIME, {"clusterName": "a"})
    web.answer("GET", "/admin/v2/clusters", ["a", "b"])
    web.answer("GET", "/admin/v2/clusters/a", {})
    web.answer("GET", "/admin/v2/clusters/b", {"serviceUrl": web.url})
    web.answer("GET", "/admin/v2/tenants/t", {"allowedClusters": ["a", "b"]})
    web.answer("GET", ROOT, {"replication_clusters": ["a"], "allowed_clusters": ["a", "b"]})
    for path in ("persistent/t/ns/partitioned", "non-persistent/t/ns/partitioned", "persistent/t/ns"):
        web.answer("GET", f"/admin/v2/{path}", [])
    result = run_admin("namespaces", "set-clusters", "t/ns", "-c", "a,b", *options.split())
    assert result.exit_code == 0, result.output
    asked = [(each.target, each.body) for each in web.asked if each.method != "GET"]
    stored = [(f"{ROOT}/replication?compareTopicPartitions=false", ["a", "b"])]
    assert asked == ([] if options == "--preview" else stored)


CHANGE = {
    "kind": "TOPIC_PARTITIONS",
    "topic": "persistent://t/ns/x",
    "current": {"partitions": 2},
    "desired": {"partitions": 4},
    "status": "FAILED",
    "error": "disk full",
}


def test_plan_when_printed_then_shows_both_sides_and_what_would_help() -> None:
    conflict = {"kind": "NAMESPACE_MISSING", "reason": "it is not there", "remedy": "create it"}
    note = {"kind": "REMOTE_ONLY_TOPIC", "topic": "persistent://t/ns/y", "partitions": 0}
    assert plan_as_text(document("CONFLICT", changes=[CHANGE], conflicts=[conflict], info=[note])).splitlines() == [
        "t/ns cannot be replicated to a, b: conflicts have to be solved first.",
        "",
        "Changes (1)",
        "CLUSTER  SUBJECT                                  CURRENT       DESIRED       STATUS  ERROR",
        "b        topic partitions of persistent://t/ns/x  partitions=2  partitions=4  FAILED  disk full",
        "",
        "Conflicts (1)",
        "b: NAMESPACE_MISSING",
        "  reason: it is not there",
        "  remedy: create it",
        "",
        "persistent://t/ns/y exists on b only.",
    ]


def test_plan_on_a_narrow_screen_is_paragraphs() -> None:
    plan = document("NEEDS_ADJUSTMENT", changes=[CHANGE])
    widest = max(map(len, plan_as_text(plan).splitlines()))
    assert plan_as_text(plan, widest) == plan_as_text(plan)
    assert plan_as_text(plan, widest - 1).splitlines()[2:] == [
        "Changes (1)",
        "b: topic partitions of persistent://t/ns/x",
        "  current: partitions=2",
        "  desired: partitions=4",
        "  status: FAILED",
        "  error: disk full",
    ]


def test_plan_when_a_table_is_asked_for_is_the_one_for_people(web: StubWeb, run_admin: RunAdmin) -> None:
    plan = document("NEEDS_ADJUSTMENT", changes=[CHANGE])
    web.answer("GET", RUNTIME, {"supportsReplicationPreview": "true"})
    web.answer("POST", f"{ROOT}/replication", plan)
    result = run_admin("namespaces", "set-clusters", "t/ns", "-c", "a,b", "--preview", "-o", "table")
    assert result.output == f"{plan_as_text(plan)}\n"


def test_many_topics_without_a_difference_are_counted_and_odd_names_stay_on_their_line() -> None:
    topics = [{"kind": "REMOTE_ONLY_TOPIC", "topic": f"persistent://t/ns/{n}\n", "partitions": 0} for n in range(12)]
    lines = plan_as_text(document("READY", info=topics)).splitlines()
    assert lines[2] == r'"persistent://t/ns/0\n" exists on b only.'
    assert (len(lines), lines[-1]) == (13, "So do 2 more topics, which -o json lists.")


@pytest.mark.parametrize(
    ("requested", "note"),
    [
        (["b"], "Nothing was compared, as a is not in the list: t/ns would not be served there."),
        (["a", "b"], "no cluster is new in the list"),
        (["a"], "as it is."),
    ],
)
def test_plan_of_nothing_says_why(requested: list[str], note: str) -> None:
    assert note in plan_as_text(document("READY", requestedClusters=requested, clusters=[])).splitlines()[-1]


def test_refusal_of_clusters_that_differ_leads_to_the_preview(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("POST", f"{ROOT}/replication", {"reason": "Partition count mismatch"}, status=409)
    for options, told in (([], True), (["--skipCompareTopicPartitions"], False)):
        result = run_admin("namespaces", "set-clusters", "t/ns", "-c", "a,b", *options)
        assert (result.exit_code, "--preview" in result.output) == (1, told)


def test_cluster_that_was_not_compared_when_printed_then_says_why() -> None:
    text = plan_as_text(document("READY", skipReason="one configuration store"))
    assert text.endswith("b was not compared: one configuration store.")
