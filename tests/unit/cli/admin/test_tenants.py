"""``tenants``."""

from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin

ROOT = "/admin/v2/tenants"


def test_create_when_no_clusters_are_given_then_takes_all(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", "/admin/v2/clusters", ["east", "west"])
    assert run_admin("tenants", "create", "demo").exit_code == 0
    assert (web.last.method, web.last.target) == ("PUT", f"{ROOT}/demo")
    assert web.last.body == {"adminRoles": [], "allowedClusters": ["east", "west"]}


def test_create_when_roles_and_clusters_are_given_then_sends_them(web: StubWeb, run_admin: RunAdmin) -> None:
    assert run_admin("tenants", "create", "demo", "-r", "a,b", "-c", "east").exit_code == 0
    assert web.last.body == {"adminRoles": ["a", "b"], "allowedClusters": ["east"]}
    assert len(web.asked) == 1


def test_update_when_only_roles_are_given_then_keeps_clusters(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/demo", {"adminRoles": ["old"], "allowedClusters": ["east"]})
    assert run_admin("tenants", "update", "demo", "--admin-roles", "new").exit_code == 0
    assert (web.last.method, web.last.body) == ("POST", {"adminRoles": ["new"], "allowedClusters": ["east"]})


def test_get_and_list_when_used_then_print(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", ROOT, ["demo", "public"])
    web.answer("GET", f"{ROOT}/demo", {"adminRoles": [], "allowedClusters": ["east"]})
    assert run_admin("tenants", "list").stdout == "demo\npublic\n"
    expected = '{\n  "adminRoles" : [ ],\n  "allowedClusters" : [ "east" ]\n}\n'
    assert run_admin("tenants", "get", "demo").stdout == expected


def test_delete_when_forced_then_says_so(web: StubWeb, run_admin: RunAdmin) -> None:
    assert run_admin("tenants", "delete", "demo", "-f").exit_code == 0
    assert (web.last.method, web.last.target) == ("DELETE", f"{ROOT}/demo?force=true")
