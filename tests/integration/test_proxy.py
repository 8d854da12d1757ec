"""The lookup proxy in front of our broker: the official client, our clients, and what must not get through."""

from __future__ import annotations

import asyncio
import json
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from interpulse.client import AdminClient, Client
from interpulse.client.config import BrokerAddress
from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions
from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import AuthenticationError, AuthorizationError, TopicNotFound
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.front_ends.access import TOPIC, token
from tests.support import commands
from tests.support.certificates import Authority, serial, until_replaced
from tests.support.official_client import RECEIVE_MS, connected, receive
from tests.support.proxies import ProxyInThread, proxy_in_thread, running_proxy
from tests.support.raw_client import RawClient, entry
from tests.support.scripted_zookeeper import scripted_zookeeper
from tests.support.standalone_process import environment, free_port, limited
from tests.support.waiting import eventually, until

SECONDS_MAX = 120
SERVICE_URL, WEB_URL = "pulsar://127.0.0.1:1", "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    with InProcessBroker(tmp_path_factory.mktemp("behind") / "data", {"replicationJob": "external"}) as broker:
        yield broker


@pytest.fixture(scope="module")
def proxy(behind: InProcessBroker) -> Iterator[ProxyInThread]:
    with proxy_in_thread(behind.service_url, behind.web_url) as started:
        yield started


def by_token(role: str) -> Credentials:
    return Credentials.token(f"token:{token(role)}")


def greeting(broker: str | None = None, **fields: Any) -> bytes:
    """CONNECT, for this broker behind the proxy."""
    connect = pb.CommandConnect(client_version="raw", protocol_version=21, proxy_to_broker_url=broker, **fields)
    return commands.encode(connect)


def place_of(service_url: str) -> str:
    return service_url.removeprefix("pulsar://")


def page(url: str, **headers: str) -> tuple[int, str]:
    """Status and content of a web page."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=SECONDS_MAX) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def metric(web_url: str, name: str) -> float:
    lines = page(f"{web_url}/metrics")[1].splitlines()
    return float(next(line.split()[1] for line in lines if line.split()[0] == name))


# --- clients work through it unchanged


def test_official_client_when_it_knows_the_proxy_only_then_everything_works(
    proxy: ProxyInThread, behind: InProcessBroker, tmp_path: Path
) -> None:
    behind.admin.topics.create_partitioned("persistent://public/default/official", 3)
    with connected(proxy.service_url, tmp_path / "client.log") as client:
        topic = "persistent://public/default/official"
        assert len(client.get_topic_partitions(topic)) == 3
        consumer = client.subscribe(topic, "s")
        producer = client.create_producer(topic)
        sent = {b"message %d" % number for number in range(300)}
        for content in sorted(sent):
            producer.send(content)
        assert {message.data() for message in receive(consumer, 300)} == sent
        reader = client.create_reader("persistent://public/default/official-partition-0", pulsar.MessageId.earliest)
        assert reader.read_next(RECEIVE_MS).data() in sent
        pattern = client.subscribe(re.compile("persistent://public/default/offic.*"), "by pattern")
        producer.send(b"after")
        assert pattern.receive(RECEIVE_MS).data() == b"after"


def test_official_client_when_its_url_is_http_then_admin_calls_and_lookups_go_through(proxy: ProxyInThread) -> None:
    with connected(proxy.web_url) as client:
        assert client.get_topic_partitions("persistent://public/default/over-http") == [
            "persistent://public/default/over-http"
        ]


async def test_our_client_when_it_asks_for_many_topics_then_all_are_behind_the_proxy(
    proxy: ProxyInThread, behind: InProcessBroker
) -> None:
    before = metric(proxy.web_url, "pulsar_proxy_batch_lookup_topics")
    topics = [f"persistent://public/default/many-{number}" for number in range(700)]
    async with Client(proxy.service_url) as client:
        found = await client.lookup_batch(topics)
        assert metric(proxy.web_url, "pulsar_proxy_batch_lookup_topics") == before + 700
        assert set(found) == {*topics}
        addresses = [address for address in found.values() if isinstance(address, BrokerAddress)]
        assert len(addresses) == 700
        assert {(address.port, address.behind) for address in addresses} == {
            (int(proxy.service_url.rpartition(":")[2]), place_of(behind.service_url))
        }
        consumer = await client.subscribe(topics[:20], "s")
        producers = [await client.create_producer(topic) for topic in topics[:20]]
        for producer in producers:
            await producer.send(b"x")
        assert {(await consumer.receive()).content for _ in topics[:20]} == {b"x"}


async def test_our_clients_when_they_ask_then_failures_and_the_create_flag_come_through_unchanged(
    proxy: ProxyInThread, behind: InProcessBroker
) -> None:
    async with Client(proxy.service_url) as client, Client(behind.service_url) as direct:
        with pytest.raises(TopicNotFound) as through:
            await client.get_partitions_for_topic("absent", create=False)
        with pytest.raises(TopicNotFound) as plain:
            await direct.get_partitions_for_topic("absent", create=False)
        assert str(through.value) == str(plain.value)
        assert await client.get_topics_of_namespace("public/default", "ALL") == (
            await direct.get_topics_of_namespace("public/default", "ALL")
        )
        assert await client.get_schema("without-schema") is None
    async with AdminClient(proxy.web_url) as admin:
        assert "public" in await admin.tenants.list()


@pytest.mark.parametrize(
    ("frame", "field"),
    [
        (commands.lookup(7, "persistent://nowhere/nothing/x"), "lookupTopicResponse"),
        (commands.partitioned_metadata(7, "persistent://nowhere/nothing/x"), "partitionMetadataResponse"),
        (commands.batch_lookup(7, []), "batchLookupTopicResponse"),
        (commands.get_topics_of_namespace(7, "nothing"), "error"),
    ],
)
def test_refusals_when_they_come_from_the_broker_then_have_the_type_that_answers_the_question(
    proxy: ProxyInThread, behind: InProcessBroker, frame: bytes, field: str
) -> None:
    with RawClient(proxy.service_url) as client, RawClient(behind.service_url) as direct:
        client.send(frame)
        direct.send(frame)
        answers = client.receive().command, direct.receive().command
    assert answers[0].HasField(field)  # type: ignore[arg-type]
    assert answers[0] == answers[1]


def test_connected_when_a_client_looks_up_then_leaves_the_size_of_messages_to_brokers(
    proxy: ProxyInThread, behind: InProcessBroker
) -> None:
    """The official client believes the newest of all its connections."""
    with RawClient(proxy.service_url, greet=False) as client:
        client.send(greeting())
        connected = client.receive().command.connected
        assert not connected.HasField("max_message_size")
        assert connected.feature_flags.supports_batch_lookup
        assert connected.feature_flags.supports_get_partitioned_metadata_without_auto_creation
        assert not connected.feature_flags.supports_topic_watchers
        assert not connected.feature_flags.supports_repl_dedup_by_lid_and_eid
    with RawClient(proxy.service_url, greet=False) as client:
        client.send(greeting(place_of(behind.service_url)))
        connected = client.receive().command.connected
        assert connected.HasField("max_message_size")
        assert connected.feature_flags.supports_topic_watchers
        assert connected.feature_flags.supports_repl_dedup_by_lid_and_eid


# --- not an open relay


@pytest.mark.parametrize("place", ["127.0.0.1:{stranger}", "localhost:{stranger}", "example.org", "a@b:1", ":1", "x:0"])
def test_client_when_it_names_what_is_no_broker_then_nothing_is_connected(proxy: ProxyInThread, place: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger, RawClient(proxy.service_url, greet=False) as client:
        client.send(greeting(place.format(stranger=stranger.getsockname()[1])))
        error = client.receive().command.error
        assert (error.error, error.message) == (pb.ServiceNotReady, "Target broker cannot be validated.")
        assert client.closed_by_broker()
        stranger.settimeout(0.1)
        with pytest.raises(TimeoutError):
            stranger.accept()


@pytest.mark.parametrize(
    "settings",
    [
        {"brokerProxyAllowedHostNames": "*.example.com"},
        {"brokerProxyAllowedIPAddresses": "10.0.0.0/8"},
        {"brokerProxyAllowedTargetPorts": "1-1024"},
    ],
)
def test_known_broker_when_the_settings_do_not_allow_it_then_refused(
    behind: InProcessBroker, settings: dict[str, str]
) -> None:
    with (
        proxy_in_thread(behind.service_url, behind.web_url, **settings) as proxy,
        RawClient(proxy.service_url, greet=False) as client,
    ):
        client.send(greeting(place_of(behind.service_url)))
        assert client.receive().command.error.message == "Target broker cannot be validated."


@pytest.mark.parametrize("ports_allowed", [True, False])
def test_stranger_when_a_peer_cluster_has_its_address_then_no_client_is_connected_to_it(
    tmp_path: Path, ports_allowed: bool
) -> None:
    """Whoever may register clusters may redirect lookups to any address."""
    with (
        socket.create_server(("127.0.0.1", 0)) as stranger,
        InProcessBroker(tmp_path / "data", {"replicationJob": "external"}) as broker,
    ):
        place = f"127.0.0.1:{stranger.getsockname()[1]}"
        evil = ClusterData("http://127.0.0.1:1", broker_service_url=f"pulsar://{place}")
        broker.admin.clusters.create("evil", evil)
        broker.admin.clusters.set_peers("standalone", ["evil"])
        broker.admin.tenants.create("moved", TenantInfo(allowed_clusters=("evil", "standalone")))
        broker.admin.namespaces.create("moved/away", clusters=["evil"])
        ports = place_of(broker.service_url).rpartition(":")[2] if ports_allowed else "*"
        settings = {"brokerProxyAllowedTargetPorts": ports, "brokerProxyConnectTimeoutMs": 300}
        with proxy_in_thread(broker.service_url, broker.web_url, **settings) as proxy:
            with RawClient(proxy.service_url) as client:
                answer = client.ask(commands.lookup(1, "persistent://moved/away/t"))
                assert answer.error == (pb.MetadataError if ports_allowed else pb.ServiceNotReady)
            stranger.settimeout(0.1)
            if ports_allowed:
                with pytest.raises(TimeoutError):
                    stranger.accept()
            else:
                stranger.accept()[0].close()
            with RawClient(proxy.service_url, greet=False) as client:
                client.send(greeting(place))
                assert client.receive().command.error.message == "Target broker cannot be validated."


def test_client_when_it_calls_itself_a_proxy_then_refused(proxy: ProxyInThread) -> None:
    with RawClient(proxy.service_url, greet=False) as client:
        client.send(greeting(proxy_version="1"))
        assert client.receive().command.error.error == pb.NotAllowedError
        assert client.closed_by_broker()


@pytest.mark.parametrize(
    "bytes_sent",
    [b"GET / HTTP/1.1\r\n\r\n", commands.PING, commands.lookup(1, "x"), (1 << 20).to_bytes(4, "big")],
    ids=["http", "ping", "lookup", "large"],
)
def test_connection_when_it_does_not_begin_with_connect_then_closed(proxy: ProxyInThread, bytes_sent: bytes) -> None:
    with RawClient(proxy.service_url, greet=False) as client:
        client.send(bytes_sent)
        assert client.closed_by_broker()


def test_client_that_looks_up_when_it_wants_to_produce_there_then_disconnected(proxy: ProxyInThread) -> None:
    with RawClient(proxy.service_url) as client:
        client.send(commands.producer(1, 1, "persistent://public/default/x"))
        assert client.closed_by_broker()


# --- the admin API


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/metrics/../admin",
        "/metrics2",
        "/administration",
        "/admin/../metrics",
        "/admin/%2e%2e/metrics",
        "/livez/x",
    ],
)
def test_path_when_it_is_none_of_the_admin_api_then_not_forwarded(proxy: ProxyInThread, path: str) -> None:
    host, _, port = proxy.web_url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=SECONDS_MAX) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert connection.makefile("rb").readline().split()[1] == b"404"


def test_admin_calls_when_forwarded_then_answers_are_those_of_the_broker(
    proxy: ProxyInThread, behind: InProcessBroker
) -> None:
    for path in ("/admin/v2/clusters", "/admin/v2/persistent/public/default/absent/stats", "/lookup/v2/topic/x"):
        assert page(proxy.web_url + path) == page(behind.web_url + path)


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
def test_web_page_from_elsewhere_when_it_calls_the_proxy_then_refused(
    proxy: ProxyInThread, headers: dict[str, str]
) -> None:
    assert page(f"{proxy.web_url}/admin/v2/clusters", **headers)[0] == 403


def test_body_when_it_is_above_the_limit_then_refused(behind: InProcessBroker) -> None:
    with proxy_in_thread(behind.service_url, behind.web_url, httpInputMaxReplayBufferSize=100) as proxy:
        request = urllib.request.Request(f"{proxy.web_url}/admin/v2/tenants/large", data=b"x" * 101, method="PUT")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=SECONDS_MAX)
        assert refused.value.code == 413
        assert "httpInputMaxReplayBufferSize=100" in json.load(refused.value)["reason"]


def test_health_when_the_proxy_serves_then_says_so(proxy: ProxyInThread) -> None:
    assert page(f"{proxy.web_url}/livez") == (200, "ok")
    assert page(f"{proxy.web_url}/readyz") == (200, "ok")


# --- limits


def test_connections_when_above_the_limit_then_closed_and_counted(behind: InProcessBroker) -> None:
    with proxy_in_thread(behind.service_url, behind.web_url, maxConcurrentInboundConnections=5) as proxy:
        kept = [RawClient(proxy.service_url) for _ in range(5)]
        for _ in range(1000):
            with RawClient(proxy.service_url, greet=False) as one_more:
                assert one_more.closed_by_broker()
        assert metric(proxy.web_url, "pulsar_proxy_rejected_connections") == 1000
        assert metric(proxy.web_url, "pulsar_proxy_new_connections") == 5
        kept.pop().close()
        until(lambda: metric(proxy.web_url, "pulsar_proxy_active_connections") == 4)
        kept.append(RawClient(proxy.service_url))
        for client in kept:
            client.send(commands.PING)
            assert client.receive().command.type == pb.BaseCommand.PONG
            client.close()


def test_connections_when_one_address_has_too_many_then_closed(behind: InProcessBroker) -> None:
    with (
        proxy_in_thread(behind.service_url, behind.web_url, maxConcurrentInboundConnectionsPerIp=1) as proxy,
        RawClient(proxy.service_url),
        RawClient(proxy.service_url, greet=False) as second,
    ):
        assert second.closed_by_broker()


# --- flow of bytes


def test_consumer_that_reads_nothing_when_behind_the_proxy_then_what_waits_is_bounded(
    proxy: ProxyInThread, behind: InProcessBroker
) -> None:
    topic, count, size = "persistent://public/default/slow-reader", 64, 1024 * 1024
    with RawClient(proxy.service_url, greet=False) as deaf, RawClient(behind.service_url) as producer:
        deaf.send(greeting(place_of(behind.service_url)))
        assert deaf.receive().command.type == pb.BaseCommand.CONNECTED
        subscribe = pb.CommandSubscribe(topic=topic, subscription="s", subType=0, consumer_id=1, request_id=1)  # type: ignore[arg-type]
        deaf.ask(commands.encode(subscribe))
        producer.ask(commands.producer(2, 1, topic))
        before = metric(proxy.web_url, "pulsar_proxy_binary_bytes")
        deaf.send(commands.flow(1, count))
        for number in range(count):
            producer.send(commands.send(1, number, entry(bytes(size))))
            assert producer.receive().command.type == pb.BaseCommand.SEND_RECEIPT
        moved = metric(proxy.web_url, "pulsar_proxy_binary_bytes") - before
        assert moved < 16 * size < count * size, "the proxy stops reading when its client does"
        with connected(proxy.service_url) as other:
            other.create_producer("persistent://public/default/beside").send(b"nobody waits for the deaf one")
        received = [deaf.receive() for _ in range(count)]
        assert {frame.command.type for frame in received} == {pb.BaseCommand.MESSAGE}
    until(lambda: metric(proxy.web_url, "pulsar_proxy_active_connections") == 0)


def test_client_when_it_ends_its_half_then_still_receives_what_it_asked_for(
    proxy: ProxyInThread, behind: InProcessBroker
) -> None:
    with RawClient(proxy.service_url, greet=False) as client:
        client.send(greeting(place_of(behind.service_url)))
        client.receive()
        client.send(commands.partitioned_metadata(3, "persistent://public/default/half"))
        client._socket.shutdown(socket.SHUT_WR)
        assert client.receive().command.partitionMetadataResponse.request_id == 3
        assert client.closed_by_broker()


def test_broker_when_it_restarts_behind_the_proxy_then_clients_come_back_by_themselves(tmp_path: Path) -> None:
    settings = {"replicationJob": "external", "brokerServicePort": free_port(), "webServicePort": free_port()}
    broker = InProcessBroker(tmp_path / "data", settings).start()
    try:
        with proxy_in_thread(broker.service_url, broker.web_url) as proxy, connected(proxy.service_url) as client:
            consumer = client.subscribe("persistent://public/default/restarted", "s")
            producer = client.create_producer("persistent://public/default/restarted")
            producer.send(b"before")
            broker.stop()
            assert page(f"{proxy.web_url}/admin/v2/clusters")[0] == 502
            broker = InProcessBroker(tmp_path / "data", settings).start()
            producer.send(b"after")
            assert [message.data() for message in receive(consumer, 2)] == [b"before", b"after"]
            assert page(f"{proxy.web_url}/admin/v2/clusters")[0] == 200
    finally:
        broker.stop()


def test_lookup_when_no_broker_can_be_reached_then_the_client_may_ask_again() -> None:
    with (
        proxy_in_thread(f"pulsar://127.0.0.1:{free_port()}", "http://127.0.0.1:1") as proxy,
        RawClient(proxy.service_url) as client,
    ):
        answer = client.ask(commands.lookup(1, "persistent://public/default/x"))
        assert answer.error == pb.ServiceNotReady


# --- the command


async def test_proxy_when_it_listens_everywhere_then_warns_of_no_address_that_clients_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They are told the addresses of brokers alone."""
    async with running_proxy(SERVICE_URL, WEB_URL, bindAddress="0.0.0.0") as proxy:
        assert proxy.service_url.startswith("pulsar://localhost:")
    assert "advertised" not in caplog.text


def test_command_when_asked_to_stop_then_ends_with_clients_connected(behind: InProcessBroker) -> None:
    line = [sys.executable, "-c", "from interpulse.cli.main import main; main()", "proxy", "--port", "0"]
    line += ["--http-port", "0", "--set", f"brokerServiceURL={behind.service_url}", "--log-format", "json"]
    line += ["--set", f"brokerWebServiceURL={behind.web_url}", "--set", "numIOThreads=4"]
    line = limited("-Sn 256", line)
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        service_url = process.stdout.readline().strip().removeprefix("binary service: ")
        web_url = process.stdout.readline().strip().removeprefix("web service: ")
        assert process.stdout.readline() == "ready\n"
        with RawClient(service_url), RawClient(service_url, greet=False) as client:
            client.send(greeting(place_of(behind.service_url)))
            client.receive()
            assert page(f"{web_url}/livez")[0] == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=SECONDS_MAX) == 0
            assert client.closed_by_broker()
        said = [json.loads(text) for text in process.stderr.read().splitlines()]
        events = [each["event"] for each in said]
        assert [events[0], events[1], events[-1]] == ["starting", "settings without effect", "stopped"]
        assert said[0]["open_files"] == resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    finally:
        process.kill()
        process.communicate()


def test_command_when_asked_to_stop_while_it_looks_for_zookeeper_then_ends_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        line = [sys.executable, "-c", "from interpulse.cli.main import main; main()", "proxy", "--port", "0"]
        line += ["--http-port", "0", "--set", f"metadataStoreUrl=zk:127.0.0.1:{silent.getsockname()[1]}"]
        line += ["--set", "metadataStoreSessionTimeoutMillis=3600000"]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
        try:
            silent.settimeout(SECONDS_MAX)
            with silent.accept()[0]:
                process.send_signal(signal.SIGTERM)
                assert process.wait(timeout=SECONDS_MAX) == 0
            printed, logged = process.communicate()
            assert (printed, "stopped" in logged) == ("", True)
        finally:
            process.kill()
            process.communicate()


# --- encryption and credentials


def test_client_when_the_proxy_ends_tls_then_works_as_without(behind: InProcessBroker, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    own = authority.issue("localhost")
    settings = {
        "servicePortTls": 0,
        "webServicePortTls": 0,
        "tlsCertificateFilePath": own.certificate,
        "tlsKeyFilePath": own.key,
        "advertisedAddress": "localhost",
    }
    with proxy_in_thread(behind.service_url, behind.web_url, **settings) as proxy:
        logger = pulsar.FileLogger(pulsar.LoggerLevel.Warn, str(tmp_path / "client.log"))
        client = pulsar.Client(
            proxy.app.service_url_tls,
            tls_trust_certs_file_path=str(authority.file),
            tls_validate_hostname=True,
            logger=logger,
            operation_timeout_seconds=20,
        )
        consumer = client.subscribe("persistent://public/default/encrypted", "s")
        client.create_producer("persistent://public/default/encrypted").send(b"inside")
        assert consumer.receive(RECEIVE_MS).data() == b"inside"
        client.close()
        until(lambda: metric(proxy.web_url, "pulsar_proxy_active_connections") == 0)
        trusting = ssl.create_default_context(cafile=str(authority.file))
        with urllib.request.urlopen(f"{proxy.app.web_url_tls}/admin/v2/clusters", context=trusting) as answer:
            assert json.load(answer) == ["standalone"]


async def test_certificate_when_renewed_then_new_connections_get_it_and_open_ones_stay(
    behind: InProcessBroker, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "authority")
    own = authority.issue("localhost")
    settings = {
        "servicePortTls": 0,
        "webServicePortTls": 0,
        "tlsCertificateFilePath": own.certificate,
        "tlsKeyFilePath": own.key,
        "tlsCertRefreshCheckDurationSec": 0,
    }
    trusted = TlsOptions(str(authority.file))
    async with (
        running_proxy(behind.service_url, behind.web_url, **settings) as proxy,
        Client(proxy.service_url_tls, tls=trusted) as client,
    ):
        producer = await client.create_producer("persistent://public/default/renewed")
        urls = proxy.service_url_tls, proxy.web_url_tls
        before = [await serial(url, authority) for url in urls]
        authority.issue("localhost")
        await until_replaced(urls, before, authority)
        await producer.send(b"still here")
        assert producer.is_connected


async def test_clients_when_credentials_are_forwarded_then_brokers_decide_who_may_what(
    token_broker: InProcessBroker,
) -> None:
    async with running_proxy(
        token_broker.service_url, token_broker.web_url, forwardAuthorizationCredentials=True
    ) as proxy:
        for url in (proxy.service_url, proxy.web_url):
            async with Client(url, credentials=by_token("acme-admin")) as client:
                consumer = await client.subscribe(TOPIC, f"behind a proxy {url}")
                await (await client.create_producer(TOPIC)).send(b"hello")
                assert (await consumer.receive()).content == b"hello"
            async with Client(url, credentials=by_token("nobody")) as client:
                with pytest.raises((AuthorizationError, AuthenticationError), match=r"not authorized|Unauthorized"):
                    await client.create_producer(TOPIC)
        for credentials in (None, Credentials.token("token:abc")):
            async with Client(proxy.service_url, credentials=credentials, operation_timeout_ms=5000) as client:
                with pytest.raises((AuthenticationError, AuthorizationError)):
                    await client.create_producer(TOPIC)
        async with AdminClient(proxy.web_url, credentials=by_token("admin")) as admin:
            assert "acme" in await admin.tenants.list()
        async with AdminClient(proxy.web_url) as admin:
            with pytest.raises(AuthenticationError):
                await admin.tenants.list()


async def test_clients_when_credentials_are_not_forwarded_then_nobody_to_brokers(token_broker: InProcessBroker) -> None:
    async with running_proxy(token_broker.service_url, token_broker.web_url) as proxy:
        async with Client(
            proxy.service_url, credentials=by_token("admin"), operation_timeout_ms=3000, lookup_timeout_ms=3000
        ) as client:
            with pytest.raises(AuthenticationError):
                await client.create_producer(TOPIC)
        async with AdminClient(proxy.web_url, credentials=by_token("admin")) as admin:
            with pytest.raises(AuthenticationError):
                await admin.tenants.list()


def test_client_when_it_speaks_for_another_then_the_claim_is_dropped(token_broker: InProcessBroker) -> None:
    """Even with the role of a proxy."""
    settings = {"forwardAuthorizationCredentials": True}
    with (
        proxy_in_thread(token_broker.service_url, token_broker.web_url, **settings) as proxy,
        RawClient(proxy.service_url, greet=False) as client,
    ):
        as_proxy = {"auth_method_name": "token", "auth_data": token("proxy").encode(), "original_principal": "admin"}
        client.send(greeting(place_of(token_broker.service_url), **as_proxy))
        assert client.receive().command.error.error == pb.AuthorizationError
        headers = {"Authorization": f"Bearer {token('proxy')}", "X-Original-Principal": "admin"}
        assert page(f"{proxy.web_url}/admin/v2/tenants", **headers)[0] in (401, 403)


# --- brokers that register


async def test_brokers_when_they_register_in_zookeeper_then_clients_reach_them(behind: InProcessBroker) -> None:
    async with scripted_zookeeper() as zookeeper:
        where = await zookeeper.listen()
        registrar = await ZooKeeperClient.connect(where)
        async with running_proxy(metadataStoreUrl=f"zk:{where}") as proxy:
            assert (await asyncio.to_thread(page, f"{proxy.web_url}/readyz"))[0] == 503
            report = {"pulsarServiceUrl": behind.service_url, "webServiceUrl": behind.web_url}
            await registrar.create_parents("/loadbalance/brokers/b")
            await registrar.create("/loadbalance/brokers/b", json.dumps(report).encode(), ephemeral=True)
            await eventually(lambda: proxy.ready)
            async with Client(proxy.service_url) as client, AdminClient(proxy.web_url) as admin:
                await (await client.create_producer("persistent://public/default/registered")).send(b"x")
                assert "public" in await admin.tenants.list()
            await registrar.close()
            await eventually(lambda: not proxy.ready)
