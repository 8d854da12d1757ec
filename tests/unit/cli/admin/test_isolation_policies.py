"""``ns-isolation-policy``."""

import json

from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin

ROOT = "/admin/v2/clusters/east/namespaceIsolationPolicies"
POLICY = {
    "namespaces": ["t/a", "t/b.*"],
    "primary": ["a-.*"],
    "secondary": [],
    "auto_failover_policy": {
        "parameters": {"min_limit": "1", "usage_threshold": "80"},
        "policy_type": "min_available",
    },
}
SET = ("ns-isolation-policy", "set", "east", "p", "--namespaces", "t/a,t/b.*", "--primary", "a-.*")
FAILOVER = ("--auto-failover-policy-type", "min_available", "--auto-failover-policy-params")


def test_set_when_used_as_pulsar_admin_then_sends_the_same(web: StubWeb, run_admin: RunAdmin) -> None:
    assert run_admin(*SET, *FAILOVER, "min_limit=1,usage_threshold=80").exit_code == 0
    assert (web.last.method, web.last.target, web.last.body) == ("POST", f"{ROOT}/p", POLICY)
    more = ("--secondary", "b,c", "--unload-scope", "none")
    assert run_admin(*SET, *more, *FAILOVER, "min_limit=1,usage_threshold=80").exit_code == 0
    assert web.last.body == POLICY | {"secondary": ["b", "c"], "unload_scope": "none"}


def test_set_when_a_word_is_none_of_pulsars_then_is_refused(web: StubWeb, run_admin: RunAdmin) -> None:
    assert run_admin(*SET, "--auto-failover-policy-type", "x", FAILOVER[-1], "min_limit=1").exit_code == 2
    assert run_admin(*SET, *FAILOVER, "min_limit=1", "--unload-scope", "x").exit_code == 2
    assert run_admin(*SET).exit_code == 2
    assert web.asked == []


def test_policies_when_read_then_are_printed(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", ROOT, {"p": POLICY})
    web.answer("GET", f"{ROOT}/p", POLICY | {"unload_scope": "none"})
    printed = json.loads(run_admin("ns-isolation-policy", "list", "east").stdout)
    assert printed == {"p": POLICY}
    printed = json.loads(run_admin("ns-isolation-policy", "get", "east", "p").stdout)
    assert printed == POLICY | {"unload_scope": "none"}


def test_brokers_when_read_then_are_printed(web: StubWeb, run_admin: RunAdmin) -> None:
    broker = {"brokerName": "a:1", "namespaceRegex": [], "primary": False}
    web.answer("GET", f"{ROOT}/brokers", [broker])
    web.answer("GET", f"{ROOT}/brokers/a%3A1", broker)
    assert json.loads(run_admin("ns-isolation-policy", "brokers", "east").stdout) == [broker]
    assert json.loads(run_admin("ns-isolation-policy", "broker", "east", "--broker", "a:1").stdout) == broker


def test_delete_when_used_then_asks_for_it(web: StubWeb, run_admin: RunAdmin) -> None:
    assert run_admin("ns-isolation-policy", "delete", "east", "p").exit_code == 0
    assert (web.last.method, web.last.target) == ("DELETE", f"{ROOT}/p")
