"""``brokers``."""

from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin

ROOT = "/admin/v2/brokers"


def test_questions_when_asked_then_answers_are_printed(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", ROOT, ["b:1"])
    web.answer("GET", f"{ROOT}/east", ["b:2"])
    web.answer_raw("GET", f"{ROOT}/health", b"ok")
    web.answer("GET", f"{ROOT}/configuration/runtime", {"a": "1", "b": ""})
    web.answer("GET", f"{ROOT}/configuration", ["a"])
    web.answer("GET", f"{ROOT}/configuration/values", {"a": "2"})
    assert run_admin("brokers", "list").stdout == "b:1\n"
    assert run_admin("brokers", "list", "east").stdout == "b:2\n"
    assert run_admin("brokers", "healthcheck").stdout == "ok\n"
    assert run_admin("brokers", "get-runtime-config").stdout == "a    1\nb    \n"
    assert run_admin("brokers", "list-dynamic-config").stdout == "a\n"
    assert run_admin("brokers", "get-all-dynamic-config").stdout == "a    2\n"


def test_dynamic_configuration_when_changed_then_asks_for_it(web: StubWeb, run_admin: RunAdmin) -> None:
    assert run_admin("brokers", "update-dynamic-config", "-c", "a", "-v", "false").exit_code == 0
    assert run_admin("brokers", "delete-dynamic-config", "-c", "a").exit_code == 0
    assert [(asked.method, asked.target) for asked in web.asked] == [
        ("POST", f"{ROOT}/configuration/a/false"),
        ("DELETE", f"{ROOT}/configuration/a"),
    ]


def test_broker_when_asked_about_itself_then_answers_are_printed_as_pulsar_admin_does(
    web: StubWeb, run_admin: RunAdmin
) -> None:
    status = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
    web.answer_raw("GET", f"{ROOT}/version", b"5.0.0")
    web.answer("GET", f"{ROOT}/leaderBroker", {"brokerId": "b:1"})
    web.answer("GET", f"{ROOT}/east/b%3A1/ownedNamespaces", {"t/ns/0x0_0xf": status})
    assert run_admin("brokers", "version").stdout == "5.0.0\n"
    assert run_admin("brokers", "leader-broker").stdout == '{\n  "brokerId" : "b:1"\n}\n'
    listed = run_admin("brokers", "namespaces", "east", "--url", "b:1").stdout
    assert listed == "t/ns/0x0_0xf    [broker_assignment=shared is_controlled=false is_active=true]\n"
    assert run_admin("brokers", "backlog-quota-check").stdout == "ok\n"
