"""``clusters``."""

import json
from pathlib import Path

import pytest

from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin, SentBy

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


def test_cluster_when_given_files_of_a_key_then_sends_them(web: StubWeb, run_admin: RunAdmin) -> None:
    arguments = ("--tls-key-filepath", "/k.pem", "--tls-certs-filepath", "/c.pem", "--listener-name", "l")
    assert run_admin("clusters", "create", "west", *arguments).exit_code == 0
    assert web.last.body["brokerClientKeyFilePath"] == "/k.pem"
    assert web.last.body["brokerClientCertificateFilePath"] == "/c.pem"
    assert web.last.body["listenerName"] == "l"


def test_cluster_when_described_by_a_file_then_options_are_stronger(
    web: StubWeb, run_admin: RunAdmin, tmp_path: Path
) -> None:
    file = tmp_path / "west.json"
    described = {"serviceUrl": "http://w", "brokerClientTlsEnabled": True, "brokerClientTlsKeyStoreType": "JKS"}
    file.write_text(json.dumps(described))
    arguments = ("--cluster-config-file", str(file), "--url", "http://other")
    assert run_admin("clusters", "update", "west", *arguments).exit_code == 0
    assert web.last.body == described | {"serviceUrl": "http://other", "tlsAllowInsecureConnection": False}


@pytest.mark.parametrize(
    ("text", "words"), [("serviceUrl: x", "YAML is not read"), ("[]", "is not a cluster"), (None, "cannot be read")]
)
def test_cluster_when_the_file_describes_none_then_nothing_is_sent(
    web: StubWeb, run_admin: RunAdmin, tmp_path: Path, text: str | None, words: str
) -> None:
    file = tmp_path / "west.json"
    if text is not None:
        file.write_text(text)
    result = run_admin("clusters", "create", "west", "--cluster-config-file", str(file))
    assert (result.exit_code, words in result.stderr, web.asked) == (2, True, [])


@pytest.mark.parametrize(
    ("command", "method", "path", "body"),
    [
        ("update-peer-clusters west --peer-clusters a,b", "POST", "peers", ["a", "b"]),
        (
            "create-failure-domain west --domain-name d --broker-list a:1,b:1",
            "POST",
            "failureDomains/d",
            {"brokers": ["a:1", "b:1"]},
        ),
        ("update-failure-domain west --domain-name a/b", "POST", "failureDomains/a%2Fb", {"brokers": []}),
        ("delete-failure-domain west --domain-name d", "DELETE", "failureDomains/d", None),
    ],
)
def test_change_when_typed_then_is_asked_for(
    sent_by: SentBy, command: str, method: str, path: str, body: object
) -> None:
    assert sent_by("clusters", *command.split()) == (method, f"{ROOT}/west/{path}", body)


@pytest.mark.parametrize(
    ("command", "path", "answer", "printed"),
    [
        ("get-peer-clusters west", "peers", ["a", "b"], "a\nb\n"),
        ("get-peer-clusters west", "peers", None, ""),
        (
            "get-failure-domain west --domain-name d",
            "failureDomains/d",
            {"brokers": ["a:1"]},
            '{\n  "brokers" : [ "a:1" ]\n}\n',
        ),
        (
            "list-failure-domains west",
            "failureDomains",
            {"d": {"brokers": ["a:1"]}},
            '{\n  "d" : {\n    "brokers" : [ "a:1" ]\n  }\n}\n',
        ),
    ],
)
def test_question_when_typed_then_answer_is_printed(
    web: StubWeb, run_admin: RunAdmin, command: str, path: str, answer: object, printed: str
) -> None:
    web.answer("GET", f"{ROOT}/west/{path}", answer)
    result = run_admin("clusters", *command.split())
    assert (result.exit_code, result.stdout) == (0, printed)


def test_create_when_given_key_stores_then_keeps_them(web: StubWeb, run_admin: RunAdmin) -> None:
    stores = ("--tls-enable-keystore", "--tls-trust-store", "t.jks", "--tls-key-store-pwd", "secret")
    assert run_admin("clusters", "create", "west", "--url", "http://w:8080", *stores).exit_code == 0
    assert web.last.body == {
        "serviceUrl": "http://w:8080",
        "brokerClientTlsEnabledWithKeyStore": True,
        "brokerClientTlsTrustStore": "t.jks",
        "brokerClientTlsKeyStorePassword": "secret",
        "brokerClientTlsEnabled": False,
        "tlsAllowInsecureConnection": False,
    }


def test_delete_when_everything_is_meant_then_tenants_go_first(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", "/admin/v2/tenants", ["pulsar", "t"])
    web.answer("GET", "/admin/v2/namespaces/t", ["t/ns"])
    for domain in ("persistent", "non-persistent"):
        lists = f"/admin/v2/{domain}/t/ns"
        partitioned = [f"{domain}://t/ns/p"] if domain == "persistent" else []
        web.answer("GET", f"{lists}/partitioned", partitioned)
        web.answer("GET", lists, [f"{domain}://t/ns/a"])
    result = run_admin("clusters", "delete", "east", "-a")
    assert result.exit_code == 0, result.stderr
    assert [asked.target.partition("?")[0] for asked in web.asked if asked.method == "DELETE"] == [
        "/admin/v2/persistent/t/ns/p/partitions",
        "/admin/v2/persistent/t/ns/a",
        "/admin/v2/non-persistent/t/ns/a",
        "/admin/v2/namespaces/t/ns",
        "/admin/v2/tenants/t",
        "/admin/v2/clusters/east",
    ]
    assert result.stderr.splitlines()[-1] == "t deleted"


def test_migration_when_typed_then_is_asked_for(web: StubWeb, run_admin: RunAdmin) -> None:
    urls = ("--service-url", "http://w", "--broker-url", "pulsar://w:1", "--broker-url-secure", "pulsar+ssl://w:2")
    assert run_admin("clusters", "update-cluster-migration", "east", "--migrated", *urls).exit_code == 0
    assert (web.last.method, web.last.target) == ("POST", f"{ROOT}/east/migrate?migrated=true")
    assert web.last.body == {
        "serviceUrl": "http://w",
        "brokerServiceUrl": "pulsar://w:1",
        "brokerServiceUrlTls": "pulsar+ssl://w:2",
    }
    assert run_admin("clusters", "update-cluster-migration", "east").exit_code == 0
    assert web.last.target == f"{ROOT}/east/migrate?migrated=false"
    web.answer("GET", f"{ROOT}/east/migrate", {"migrated": False, "migratedClusterUrl": None})
    printed = run_admin("clusters", "get-cluster-migration", "east").stdout
    assert json.loads(printed) == {"migrated": False, "migratedClusterUrl": {"empty": True}}
