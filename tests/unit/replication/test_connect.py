"""How another cluster is reached: by its record, or not at all and said so."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interpulse.model.clusters import ClusterData
from interpulse.model.errors import AuthenticationError, AuthorizationError, NotConnected, RemoteClusterUnavailable
from interpulse.replication.connect import broker_url, connect, misnamed, web_url
from tests.support.certificates import Authority
from tests.support.stub_web import StubWeb

BOTH = ClusterData(
    service_url="http://w:1",
    service_url_tls="https://w:2",
    broker_service_url="pulsar://w:3",
    broker_service_url_tls="pulsar+ssl://w:4",
)
TOKEN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
TLS = "org.apache.pulsar.client.impl.auth.AuthenticationTls"


@pytest.mark.parametrize(
    ("values", "web", "broker"),
    [
        pytest.param({}, "http://w:1", "pulsar://w:3", id="plain"),
        pytest.param({"broker_client_tls_enabled": True}, "https://w:2", "pulsar+ssl://w:4", id="tls-asked-for"),
        pytest.param({"service_url": None, "broker_service_url": ""}, "https://w:2", "pulsar+ssl://w:4", id="tls-only"),
    ],
)
def test_address(values: dict[str, Any], web: str, broker: str) -> None:
    data = replace(BOTH, **values)
    assert (web_url("west", data), broker_url("west", data)) == (web, broker)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(ClusterData(), "west has no serviceUrl", id="no-address"),
        pytest.param(ClusterData("htp:/w"), "not a web service URL", id="bad-address"),
        pytest.param(ClusterData("http://w", authentication_plugin="Athenz"), "Athenz is not supported", id="plug-in"),
        pytest.param(ClusterData("http://w", authentication_plugin=TOKEN), "the token is missing", id="no-token"),
        pytest.param(ClusterData("http://w", authentication_plugin=TLS), "needs an encrypted address", id="plain"),
        pytest.param(ClusterData("https://w", authentication_plugin=TLS), "tlsCertFile:/path", id="no-certificate"),
    ],
)
def test_record_that_cannot_be_used_is_named(data: ClusterData, words: str) -> None:
    with pytest.raises(RemoteClusterUnavailable, match="west") as refusal:
        connect("west", data)
    assert words in str(refusal.value)


async def test_token_is_read_from_its_file_for_every_request(tmp_path: Path) -> None:
    file = tmp_path / "west.jwt"
    with StubWeb() as web:
        web.answer("GET", "/admin/v2/clusters", ["west"])
        data = ClusterData(web.url, authentication_plugin=TOKEN, authentication_parameters=f"file://{file}")
        async with connect("west", data) as admin:
            with pytest.raises(AuthenticationError, match=r"west\.jwt cannot be read"):
                await admin.clusters.list()
            for token in ("first", "renewed"):
                file.write_text(token)
                await admin.clusters.list()
                assert web.last.headers["Authorization"] == f"Bearer {token}"


@pytest.mark.parametrize("named_by", ["record", "plug-in", "plug-in-without-parameters"])
async def test_certificate_is_shown_to_a_cluster_that_asks_for_one(tmp_path: Path, named_by: str) -> None:
    authority = Authority(tmp_path)
    server, ours = authority.issue("server"), authority.issue("ours")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.file))
    context.load_cert_chain(*server)
    context.verify_mode = ssl.CERT_REQUIRED
    files = {
        "broker_client_certificate_file_path": str(ours.certificate),
        "broker_client_key_file_path": str(ours.key),
    }
    values: dict[str, Any] = {
        "record": files,
        "plug-in": {
            "authentication_plugin": TLS,
            "authentication_parameters": f"tlsCertFile:{ours.certificate},tlsKeyFile:{ours.key}",
        },
        "plug-in-without-parameters": files | {"authentication_plugin": TLS},
    }[named_by]
    with StubWeb(context) as web:
        web.answer("GET", "/admin/v2/clusters", ["west"])
        data = ClusterData(service_url_tls=web.url, broker_client_trust_certs_file_path=str(authority.file), **values)
        async with connect("west", data) as admin:
            assert await admin.clusters.list() == ["west"]


@pytest.mark.parametrize(
    "address",
    [
        "http://user:secret@127.0.0.1:1",
        "http://user:secret@127.0.0.1:none",
        "ftp://user:secret@h",
        "http://u:se/cret@h",
    ],
)
async def test_password_in_an_address_is_not_told(address: str) -> None:
    """A real Pulsar stores such an address too."""

    async def ask() -> None:
        async with connect("west", ClusterData(service_url=address)) as admin:
            assert "cret" not in admin.web_url
            await admin.clusters.list()

    with pytest.raises((RemoteClusterUnavailable, NotConnected)) as caught:
        await ask()
    assert "***@" in str(caught.value)
    assert "cret" not in str(caught.value)


class Admin:
    """An admin API that only knows its runtime configuration, and clusters."""

    def __init__(self, answer, known=()):
        self.answer, self.known = answer, known
        self.brokers = self.clusters = self

    async def list(self):
        if isinstance(self.known, Exception):
            raise self.known
        return self.known

    async def runtime_configuration(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_name_that_the_cluster_has_is_right():
    assert await misnamed(Admin({"clusterName": "beast"}), "beast", "http://b:1") is None  # type: ignore[arg-type]


async def test_name_that_the_cluster_has_not_is_told_with_its_own():
    problem = await misnamed(Admin({"clusterName": "beast"}), "best", "http://b:1")  # type: ignore[arg-type]
    assert problem == "the cluster at http://b:1 calls itself beast, not best"


SECRET = AuthorizationError("super-users only")


@pytest.mark.parametrize(
    "admin", [Admin(SECRET, ["best", "west"]), Admin({}), Admin(SECRET), Admin(SECRET, AuthorizationError("no"))]
)
async def test_cluster_that_does_not_say_its_name_is_believed_with_a_warning(admin, caplog):
    assert await misnamed(admin, "best", "http://b:1") is None
    assert "cluster=best" in caplog.text


async def test_cluster_that_does_not_say_its_name_is_one_of_those_it_knows():
    problem = await misnamed(Admin(SECRET, ["west", "beast"]), "best", "http://b:1")  # type: ignore[arg-type]
    assert problem == "the cluster at http://b:1 knows no cluster best, so it is another one; it knows beast, west"


async def test_cluster_without_answer_is_not_believed():
    with pytest.raises(NotConnected):
        await misnamed(Admin(NotConnected("no route")), "best", "http://b:1")  # type: ignore[arg-type]
