"""Requests about brokers and their configuration."""

from interpulse.client.admin.admin_client import AdminClient
from tests.support.stub_web import StubWeb

ROOT = "/admin/v2/brokers"


async def test_brokers_when_asked_then_answers_are_read(web: StubWeb, admin: AdminClient) -> None:
    web.answer("GET", ROOT, ["b:1"])
    web.answer("GET", f"{ROOT}/east", ["b:2"])
    web.answer_raw("GET", f"{ROOT}/health", b"ok", content_type="application/json")
    web.answer("GET", f"{ROOT}/configuration/runtime", {"k": "v"})
    web.answer("GET", f"{ROOT}/configuration", ["k"])
    web.answer("GET", f"{ROOT}/configuration/values", {})
    assert await admin.brokers.list() == ["b:1"]
    assert await admin.brokers.list("east") == ["b:2"]
    assert await admin.brokers.health() == "ok"
    assert await admin.brokers.runtime_configuration() == {"k": "v"}
    assert await admin.brokers.dynamic_configuration_names() == ["k"]
    assert await admin.brokers.dynamic_configuration() == {}


async def test_dynamic_configuration_when_changed_then_key_and_value_are_encoded(
    web: StubWeb, admin: AdminClient
) -> None:
    await admin.brokers.set_dynamic_configuration("k", "a b/c")
    await admin.brokers.delete_dynamic_configuration("k")
    assert [(asked.method, asked.target) for asked in web.asked] == [
        ("POST", f"{ROOT}/configuration/k/a%20b%2Fc"),
        ("DELETE", f"{ROOT}/configuration/k"),
    ]


async def test_broker_when_asked_about_itself_then_answers_are_read(web: StubWeb, admin: AdminClient) -> None:
    status = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
    web.answer_raw("GET", f"{ROOT}/version", b"5.0.0", content_type="application/json")
    web.answer("GET", f"{ROOT}/leaderBroker", {"brokerId": "b:1", "serviceUrl": "http://b:1"})
    web.answer("GET", f"{ROOT}/a%2Fb/b%3A1/ownedNamespaces", {"t/ns/0x0_0xf": status})
    assert await admin.brokers.version() == "5.0.0"
    assert (await admin.brokers.leader())["brokerId"] == "b:1"
    assert await admin.brokers.owned_namespaces("a/b", "b:1") == {"t/ns/0x0_0xf": status}
    await admin.brokers.check_backlog_quotas()
    assert web.last.target == f"{ROOT}/backlog-quota-check"
