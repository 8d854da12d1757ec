"""``clusters``."""

from tests.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin

ROOT = "/admin/v2/clusters"


def test_list_when_current_is_wanted_then_is_marked(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", ROOT, ["east", "west"])
    web.answer("GET", "/admin/v2/brokers/configuration/runtime", {"clusterName": "west"})
    assert run_admin("clusters", "list").stdout == "east\nwest\n"
    assert run_admin("clusters", "list", "-c").stdout == "east\nwest(*)\n"


def test_get_when_broker_sends_unknown_fields_then_prints_them(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/east", {"serviceUrl": "http://e", "brokerClientTlsKeyStoreType": "JKS"})
    expected = '{\n  "serviceUrl" : "http://e",\n  "brokerClientTlsKeyStoreType" : "JKS"\n}\n'
    assert run_admin("clusters", "get", "east").stdout == expected


def test_create_when_given_urls_then_sends_them(web: StubWeb, run_admin: RunAdmin) -> None:
    arguments = ("--url", "http://w:8080", "--broker-url", "pulsar://w:6650", "--auth-plugin", "x.Token")
    assert run_admin("clusters", "create", "west", *arguments, "--auth-parameters", "token:a").exit_code == 0
    assert (web.last.method, web.last.target) == ("PUT", f"{ROOT}/west")
    assert web.last.body == {
        "serviceUrl": "http://w:8080",
        "brokerServiceUrl": "pulsar://w:6650",
        "authenticationPlugin": "x.Token",
        "authenticationParameters": "token:a",
        "brokerClientTlsEnabled": False,
        "tlsAllowInsecureConnection": False,
    }


def test_update_and_delete_when_used_then_ask_for_it(web: StubWeb, run_admin: RunAdmin) -> None:
    assert run_admin("clusters", "update", "west", "--url-secure", "https://w", "--tls-enable").exit_code == 0
    assert run_admin("clusters", "delete", "west").exit_code == 0
    assert [asked.method for asked in web.asked] == ["POST", "DELETE"]
    assert web.asked[0].body["serviceUrlTls"] == "https://w"
    assert web.asked[0].body["brokerClientTlsEnabled"] is True
