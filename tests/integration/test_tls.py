"""A broker inside TLS: both front ends, lookups, certificates of clients, files that change, and clusters."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interpulse.broker.app import BrokerApp
from interpulse.broker.config.config_sources import load_config
from interpulse.client import AdminClient, Client, Credentials, TlsOptions
from interpulse.model.errors import AuthenticationError, CertificateError, NotConnected, PulsarError
from interpulse.testing import InProcessBroker
from interpulse.testing.broker import Setting
from tests.front_ends.brokers import NO_JOB
from tests.support.certificates import Authority, Certificate, serial, until_replaced
from tests.support.shared_brokers import SharedBrokers, shared_brokers
from tests.support.standalone_process import StandaloneProcess

TOPIC = "persistent://public/default/sealed"
INSIDE_ONLY: dict[str, Setting] = {
    "brokerServicePort": "",
    "webServicePort": "",
    "brokerServicePortTls": 0,
    "webServicePortTls": 0,
    "tlsCertRefreshCheckDurationSec": 0,
}


@dataclass(frozen=True)
class Sealed:
    """A broker, and what its clients trust and may show."""

    broker: InProcessBroker
    authority: Authority

    def tls(self, shown: Certificate | None = None) -> TlsOptions:
        certificate, key = (None, None) if shown is None else map(str, shown)
        return TlsOptions(str(self.authority.file), certificate_path=certificate, key_path=key)

    def client(self, shown: Certificate | None = None, **others: Any) -> Client:
        return Client(self.broker.service_url_tls, tls=self.tls(shown), operation_timeout_ms=20_000, **others)

    def admin(self, shown: Certificate | None = None, **others: Any) -> AdminClient:
        return AdminClient(self.broker.web_url_tls, tls=self.tls(shown), timeout_ms=20_000, **others)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def files(certificate: Certificate) -> dict[str, Setting]:
    return {"tlsCertificateFilePath": str(certificate.certificate), "tlsKeyFilePath": str(certificate.key)}


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Sealed]:
    """It is reached inside TLS alone; a certificate that a client shows has to be of the authority."""
    settings = INSIDE_ONLY | files(authority.issue("broker")) | {"tlsTrustCertsFilePath": str(authority.file)} | NO_JOB
    with InProcessBroker(tmp_path_factory.mktemp("sealed") / "data", settings) as broker:
        yield Sealed(broker, authority)


def guarded_settings(authority: Authority) -> dict[str, Setting]:
    settings: dict[str, Setting] = {
        "tlsTrustCertsFilePath": str(authority.file),
        "tlsRequireTrustedClientCertOnConnect": True,
        "authenticationEnabled": True,
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderTls",
        "authorizationEnabled": True,
        "superUserRoles": "admin",
    }
    return INSIDE_ONLY | files(authority.issue("broker")) | settings | NO_JOB


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Sealed]:
    """It lets in clients with certificates alone, whose names are their roles."""
    with InProcessBroker(tmp_path_factory.mktemp("guarded") / "data", guarded_settings(authority)) as broker:
        yield Sealed(broker, authority)


async def round_trip(client: Client, topic: str, payload: bytes) -> bytes:
    consumer = await client.subscribe(topic, "all", initial_position="earliest")
    producer = await client.create_producer(topic)
    await producer.send(payload)
    return (await asyncio.wait_for(consumer.receive(), 30)).content or b""


# --- both front ends


async def test_clients_when_inside_tls_then_publish_read_and_administer(sealed: Sealed) -> None:
    async with sealed.client() as client, sealed.admin() as admin:
        large = bytes(range(256)) * 4096 * 4  # several records of TLS, and more than one write of a socket
        assert await round_trip(client, TOPIC, large) == large
        assert TOPIC in await admin.topics.list("public/default")


async def test_lookups_when_tls_is_the_only_way_then_name_it_in_every_form(sealed: Sealed) -> None:
    binary, web = sealed.broker.service_url_tls, sealed.broker.web_url_tls
    assert (sealed.broker.service_url, sealed.broker.web_url) == (binary, web)
    context = sealed.tls().context()
    found = await get_json(f"{web}/lookup/v2/topic/persistent/public/default/sealed", context)
    addresses = {
        "brokerId": web.partition("://")[2],
        "brokerUrl": "",  # without it clients of the C++ family crash
        "brokerUrlTls": binary,
        "brokerUrlSsl": binary,
        "httpUrlTls": web,
    }
    assert found == addresses
    (group,) = (await get_json(f"{web}/lookup/v2/topics", context, {"topics": [TOPIC]}))["groups"]
    assert addresses.items() <= group.items()
    record = await get_json(f"{web}/admin/v2/clusters/standalone", context)
    assert (record["serviceUrlTls"], record["brokerServiceUrlTls"]) == (web, binary)
    assert "serviceUrl" not in record


async def get_json(url: str, context: ssl.SSLContext, body: Any = None) -> Any:
    import aiohttp

    async with (
        aiohttp.ClientSession() as session,
        session.request("GET" if body is None else "POST", url, json=body, ssl=context) as answer,
    ):
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def test_client_when_it_does_not_trust_the_authority_then_is_told(sealed: Sealed, tmp_path: Path) -> None:
    stranger = TlsOptions(str(Authority(tmp_path).file))
    async with AdminClient(sealed.broker.web_url_tls, tls=stranger) as admin:
        with pytest.raises(NotConnected, match="certificate verify failed"):
            await admin.tenants.list()


async def test_connection_when_plain_or_garbage_then_is_closed_and_others_go_on(sealed: Sealed) -> None:
    async with sealed.client() as client:
        producer = await client.create_producer(f"{TOPIC}-open")
        for url in (sealed.broker.service_url_tls, sealed.broker.web_url_tls):
            for said in (b"GET /metrics HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x10" + b"\xff" * 4096):
                reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
                writer.write(said)
                writer.write_eof()
                told = await asyncio.wait_for(read_all(reader), 30)
                assert b"interpulse" not in told
                assert len(told) < 100, "an alert of TLS at most"
                writer.close()
            await producer.send(b"still here")


async def read_all(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1:DeprecationWarning")
@pytest.mark.parametrize("front_end", ["service_url_tls", "web_url_tls"])
async def test_tls_1_1_when_a_client_speaks_nothing_newer_then_is_refused(sealed: Sealed, front_end: str) -> None:
    context = sealed.tls().context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    port = int(getattr(sealed.broker, front_end).rpartition(":")[2])

    def connect() -> None:
        with (
            socket.create_connection(("127.0.0.1", port), 30) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1"),
        ):
            pass

    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.to_thread(connect)


# --- certificates of clients


async def test_certificate_when_a_client_shows_that_of_a_stranger_then_is_refused_though_none_would_do(
    sealed: Sealed, tmp_path: Path
) -> None:
    async with sealed.admin(Authority(tmp_path).issue("admin")) as admin:
        with pytest.raises(CertificateError, match="refuses the client certificate"):
            await admin.tenants.list()
    async with sealed.admin(sealed.authority.issue("anybody")) as admin:
        assert "public" in await admin.tenants.list()


async def test_certificate_when_every_client_has_to_show_one_then_none_comes_in_without(guarded: Sealed) -> None:
    async with guarded.admin() as admin:
        with pytest.raises(CertificateError, match="asks for a client certificate and none is configured"):
            await admin.tenants.list()
    async with guarded.client() as client:
        with pytest.raises(CertificateError, match="asks for a client certificate"):
            await client.create_producer(TOPIC)


async def test_certificate_when_it_names_a_role_then_permissions_are_those_of_the_role(guarded: Sealed) -> None:
    admin_files, app_files = guarded.authority.issue("admin"), guarded.authority.issue("app")
    topic = "persistent://public/default/granted"
    async with guarded.admin(admin_files) as admin, guarded.admin(app_files) as stranger:
        await admin.permissions.grant("public/default", "app", ["produce", "consume"])
        with pytest.raises(AuthenticationError, match="super-user"):
            await stranger.tenants.list()
    for shown, credentials in ((app_files, Credentials("tls", "")), (None, Credentials.tls(*map(str, app_files)))):
        async with guarded.client(shown, credentials=credentials) as client:
            assert await round_trip(client, topic, b"mine") == b"mine"
    async with guarded.client(guarded.authority.issue("other"), credentials=Credentials("tls", "")) as client:
        with pytest.raises(PulsarError, match="not authorized"):
            await client.create_producer(topic)


async def test_certificate_when_its_uri_makes_the_role_then_permissions_are_those_of_the_role(
    tmp_path: Path, authority: Authority
) -> None:
    rules: dict[str, Setting] = {
        "tlsCertIdentitySource": "SAN:URI",
        "tlsAuthPrincipalMappingRules": "RULE:^spiffe://acme/ns/([^/]+)/sa/([^/]+)$/$1__$2/L,RULE:^admin:all$/admin/",
    }
    operator = authority.issue("operator", workload="admin:all")
    checkout = authority.issue("checkout", workload="spiffe://acme/ns/Payments/sa/checkout")
    strangers = [authority.issue("admin"), authority.issue("other", workload="spiffe://other/ns/payments/sa/checkout")]
    topic = "persistent://public/default/of-workloads"
    with InProcessBroker(tmp_path / "data", guarded_settings(authority) | rules) as broker:
        of_workloads = Sealed(broker, authority)
        async with of_workloads.admin(operator) as admin:
            await admin.permissions.grant("public/default", "payments__checkout", ["produce", "consume"])
        async with of_workloads.client(checkout, credentials=Credentials("tls", "")) as client:
            assert await round_trip(client, topic, b"mine") == b"mine"
        async with of_workloads.admin(checkout) as admin:
            with pytest.raises(AuthenticationError, match="super-user"):
                await admin.tenants.list()
        for stranger in strangers:
            async with of_workloads.client(stranger, credentials=Credentials("tls", "")) as client:
                with pytest.raises(AuthenticationError, match="Failed to authenticate"):
                    await client.create_producer(topic)
            async with of_workloads.admin(stranger) as admin:
                with pytest.raises(AuthenticationError, match="Authentication required"):
                    await admin.tenants.list()


# --- files that change


async def test_certificate_when_replaced_then_counts_for_new_connections_and_those_open_stay(
    tmp_path: Path, authority: Authority
) -> None:
    own = authority.issue("replaced")
    settings = INSIDE_ONLY | files(own) | NO_JOB
    with InProcessBroker(tmp_path / "data", settings) as broker:
        sealed = Sealed(broker, authority)
        async with sealed.client() as client:
            producer = await client.create_producer(TOPIC)
            urls = broker.service_url_tls, broker.web_url_tls
            before = [await serial(url, authority) for url in urls]
            connection = broker.call(producing)
            authority.issue("replaced")
            await until_replaced(urls, before, authority)
            await producer.send(b"over the same connection")
            assert broker.call(producing) == connection


async def producing(app: BrokerApp) -> list[str]:
    """The addresses of clients with producers."""
    return [each.address for each in app.parts.binary_server._connections if each.producers]


# --- several brokers


@pytest.fixture
async def brokers(authority: Authority) -> AsyncIterator[SharedBrokers]:
    """Two of one cluster, inside TLS alone; each calls the other there."""
    own = {"brokerClientTlsEnabled": True, "brokerClientTrustCertsFilePath": str(authority.file)}
    settings = INSIDE_ONLY | files(authority.issue("broker")) | own
    config = load_config(options={key: str(value) for key, value in settings.items()}, in_cluster=True).config
    async with shared_brokers(2, config) as started:
        yield started


async def test_call_when_another_broker_owns_the_topic_then_is_sent_on_inside_tls(
    brokers: SharedBrokers, authority: Authority
) -> None:
    tls = TlsOptions(str(authority.file))
    topics = [f"persistent://public/default/t-{index}" for index in range(8)]
    brokers.tls = tls
    await brokers.spread(topics)
    async with Client(brokers[0].service_url, tls=tls) as client:
        for topic in topics:
            assert await round_trip(client, topic, b"far") == b"far"
    owners = {topic: await brokers.owner(topic) for topic in topics}
    assert {broker.id for broker in owners.values()} == {broker.id for broker in brokers.brokers}
    for broker in brokers.brokers:
        async with AdminClient(broker.web_url, tls=tls) as admin:
            for topic in topics:
                assert await admin.topics.subscriptions(topic) == ["all"]
    async with AdminClient(brokers[0].web_url, tls=tls) as admin:
        await admin.topics.create_partitioned("persistent://public/default/parted", 8)
        await admin.topics.create_subscription("persistent://public/default/parted", "sub")
        assert await admin.topics.subscriptions("persistent://public/default/parted") == ["sub"]


# --- a trial


def test_standalone_when_tls_is_tried_then_the_printed_line_is_all_a_client_needs(tmp_path: Path) -> None:
    arguments = ("--tls", "--set", "brokerServicePortTls=0", "--set", "webServicePortTls=0")
    with StandaloneProcess(tmp_path / "data", *arguments) as broker:
        said = dict(line.split(": ", 1) for line in broker.lines[:-1])
        key, _, trusted = said["clients trust it with"].partition("=")
        assert key == "tlsTrustCertsFilePath"

        async def use() -> None:
            tls = TlsOptions(trusted)
            async with (
                Client(said["binary service with TLS"], tls=tls) as client,
                AdminClient(said["web service with TLS"], tls=tls) as admin,
            ):
                assert await round_trip(client, TOPIC, b"trial") == b"trial"
                assert "public" in await admin.tenants.list()

        asyncio.run(use())
