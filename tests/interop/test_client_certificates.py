"""A real Pulsar that asks for a client certificate, on the other side: topics, messages, and listeners."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pulsar
import pytest

from interpulse.client import Client, ClientConfig, Credentials, TlsOptions
from interpulse.client.config import BrokerAddress
from interpulse.client.session import Session
from interpulse.model.errors import CertificateError, NotConnected
from interpulse.model.names import TopicName
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.spark.job.pipeline_config import PipelineConfig, Selection
from interpulse.spark.job.selection import select
from interpulse.spark.options.connection_options import access_of
from interpulse.spark.processes.process_client import process_portal, session_for
from interpulse.testing import InProcessBroker
from tests.interop.real_pulsar import RealPulsar
from tests.interop.replicated_pairs import Cluster, Pair, provision_as_job, until
from tests.interop.test_remote_credentials import NUMBERS, QUIET, copied, in_files, job_config, publish_sealed, read
from tests.support.certificates import Authority, Certificate
from tools.engines.server import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1200)]

NO_CERTIFICATE = Certificate(Path(), Path())
PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationTls"


def parameters(files: Certificate) -> str:
    return f"tlsCertFile:{files.certificate},tlsKeyFile:{files.key}"


@dataclass(frozen=True)
class TlsCluster(Cluster):
    """A cluster whose operators show a certificate themselves, at its encrypted addresses."""

    web_url_tls: str = ""
    service_url_tls: str = ""
    authority: Path = Path()
    files: Certificate = NO_CERTIFICATE
    far_url: str = ""

    def attempt(self, line: str) -> tuple[int, str, str]:
        """See `CliCluster`."""
        who = f"--auth-plugin {PLUGIN} --auth-params {parameters(self.files)}"
        return super().attempt(f"--admin-url {self.web_url_tls} --tls-trust-cert-path {self.authority} {who} {line}")

    @property
    def record(self) -> str:
        """Options of `clusters update` for its addresses."""
        return (
            f"--url-secure {self.web_url_tls} --broker-url-secure {self.service_url_tls} --tls-enable "
            f"--tls-trust-certs-filepath {self.authority}"
        )

    def client(self) -> pulsar.Client:
        """An official one."""
        certificate, key = map(str, self.files)
        return pulsar.Client(
            self.service_url_tls,
            authentication=pulsar.AuthenticationTLS(certificate, key),
            tls_trust_certs_file_path=str(self.authority),
            logger=QUIET,
        )


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[TlsCluster]:
    """It has two listeners: ``near`` is where it is, ``far`` has no server. The default is near."""
    server, admin = authority.issue("server"), authority.issue("admin")
    binary, web, unused = free_port(), free_port(), free_port()
    settings = {
        "brokerServicePortTls": str(binary),
        "webServicePortTls": str(web),
        "tlsCertificateFilePath": str(server.certificate),
        "tlsKeyFilePath": str(server.key),
        "tlsTrustCertsFilePath": str(authority.file),
        "tlsRequireTrustedClientCertOnConnect": "true",
        "authenticationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderTls",
        "authorizationEnabled": "true",
        "superUserRoles": "admin",
        "brokerClientTlsEnabled": "true",
        "brokerClientTrustCertsFilePath": str(authority.file),
        "brokerClientAuthenticationPlugin": PLUGIN,
        "brokerClientAuthenticationParameters": parameters(admin),
        "advertisedListeners": f"near:pulsar+ssl://127.0.0.1:{binary},far:pulsar+ssl://127.0.0.1:{unused}",
        "internalListenerName": "near",
    }
    with RealPulsar(tmp_path_factory.mktemp("real"), cluster_name="real", settings=settings) as plain:
        cluster = TlsCluster(
            plain.web_url,
            plain.service_url,
            "real",
            is_ours=False,
            web_url_tls=f"https://127.0.0.1:{web}",
            service_url_tls=f"pulsar+ssl://127.0.0.1:{binary}",
            authority=authority.file,
            files=admin,
            far_url=f"pulsar+ssl://127.0.0.1:{unused}",
        )
        # It says 401 before it has made what it needs itself, and opens its encrypted port last.
        until(lambda: cluster.attempt("namespaces policies public/default")[0], 0, seconds=300)
        yield cluster


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Cluster]:
    settings = {"clusterName": f"ours-{uuid.uuid4().hex[:6]}", "replicationJob": "external"}
    with InProcessBroker(tmp_path / "ours", settings) as broker:
        yield Cluster(broker.web_url, broker.service_url, settings["clusterName"])


def as_the_job_sees_it(ours: Cluster, directory: Path) -> ClusterAddress:
    """How the job reaches the real cluster: by its record alone."""
    source = ClusterAddress(cluster=ours.name, service_url=ours.service_url, admin_url=ours.web_url)
    config = PipelineConfig(
        name="look", state=directory, source=source, target=None, select=Selection(from_policies=True)
    )

    async def look() -> ClusterAddress:
        async with source.admin() as admin:
            address = (await select(config, admin))["real"].address
            assert address is not None
            return address

    return asyncio.run(look())


def reasons(pair: Pair, directory: Path, topic: str) -> set[str]:
    """Why a topic waits, after a turn of the job's control side."""
    address = as_the_job_sees_it(pair.source, directory)
    return {each["reason"] for each in provision_as_job(pair, directory, topic, target=address)}


def test_cluster_that_wants_certificates_is_reached_with_the_registered_one(
    ours: Cluster, real: TlsCluster, authority: Authority, tmp_path: Path
) -> None:
    pair = Pair(ours, real).begin()
    topic = pair.topic("x")
    preview = f"namespaces set-clusters {pair.namespace} -c {pair.both} --preview"
    pair.source.run(f"topics create-partitioned-topic {topic} -p 2")
    ours.run(f"clusters update real {real.record}")
    code, output, _ = ours.attempt(preview)
    assert (code, "asks for a client certificate and none is configured" in output) == (3, True), output
    pair.enable("--skipCompareTopicPartitions")

    stranger = Authority(tmp_path / "elsewhere").issue("admin")
    expired = authority.issue("expired", expired=True)
    locked = authority.issue("locked", password=b"secret")
    refusals = (
        (stranger.certificate, stranger.key, f"refuses the client certificate {stranger.certificate} "),
        (expired.certificate, expired.key, f"refuses the client certificate {expired.certificate} "),
        (tmp_path / "no.pem", real.files.key, f"the certificate {tmp_path / 'no.pem'} cannot be read: No such file"),
        (real.files.certificate, stranger.key, f"the key {stranger.key} does not belong to "),
        (locked.certificate, locked.key, f"the key {locked.key} is protected by a password: "),
    )
    for certificate, key, reason in refusals:
        ours.run(f"clusters update real {real.record} --tls-certs-filepath {certificate} --tls-key-filepath {key}")
        until(lambda expected=reason: expected in str(pair.status(topic)["reason"]), True)  # type: ignore[misc]
        status = pair.status(topic)
        assert (status["state"], "--tls-certs-filepath" in status["remedy"]) == ("HELD", True), status
    for certificate, key, reason in refusals:
        ours.run(f"clusters update real {real.record} --tls-certs-filepath {certificate} --tls-key-filepath {key}")
        assert {True} == {reason in str(each) for each in reasons(pair, tmp_path / "job", topic)}
    assert real.partitions(topic) is None

    files = f"--tls-certs-filepath {real.files.certificate} --tls-key-filepath {real.files.key}"
    by_plugin = f"--auth-plugin {PLUGIN} --auth-parameters {parameters(real.files)}"
    for number, record in enumerate((files, by_plugin)):
        ours.run(f"namespaces set-clusters {pair.namespace} -c {ours.name}")
        ours.run(f"clusters update real {real.record} {record}")
        another = pair.topic(f"by-{number}")
        assert ours.attempt(preview)[0] == 0
        pair.enable()
        ours.run(f"topics create-partitioned-topic {another} -p 2")
        until(lambda name=another: real.partitions(name), 2)  # type: ignore[misc]
        until(lambda name=another: reasons(pair, tmp_path / "job", name), {"Spark is starting"}, seconds=300)  # type: ignore[misc]


async def looked_up(address: ClusterAddress, topic: str) -> tuple[BrokerAddress, BrokerAddress]:
    """The broker of a topic, over the binary protocol as one of Spark's workers asks for it, and over HTTP."""
    session = Session(
        ClientConfig(
            address.admin_url, credentials=address.credentials, tls=address.tls, listener_name=address.listener_name
        )
    )
    over_http = await session.lookup.broker(TopicName.parse(topic))
    await session.close()
    worker = await session_for(address.service_url, 10_000, access_of(address))
    return await worker.lookup.broker(TopicName.parse(topic)), over_http


def test_broker_is_looked_for_by_the_registered_listener(ours: Cluster, real: TlsCluster, tmp_path: Path) -> None:
    """A standalone Pulsar tells clients of the binary protocol to come to the broker through the address they know."""
    pair = Pair(ours, real).begin()
    topic = pair.topic("x")
    record = f"{real.record} --auth-plugin {PLUGIN} --auth-parameters {parameters(real.files)}"
    ours.run(f"clusters update real {record}")
    ours.run(f"topics create {topic}")
    pair.enable()
    until(lambda: real.partitions(topic), 0)
    for listener, url in (("near", real.service_url_tls), ("far", real.far_url), ("", real.service_url_tls)):
        ours.run(f"clusters update real {record} --listener-name '{listener}'")
        address = as_the_job_sees_it(ours, tmp_path)
        binary, over_http = process_portal().call(partial(looked_up, address, topic))
        assert (f"pulsar+ssl://{binary.behind}", str(over_http)) == (url, url)


async def produce(real: TlsCluster, url: str, files: Certificate | None, listener: str | None = None) -> None:
    async with Client(
        url,
        credentials=Credentials.tls(str(files.certificate), str(files.key)) if files else None,
        tls=TlsOptions(str(real.authority)),
        listener_name=listener,
        operation_timeout_ms=5_000,
    ) as client:
        await (await client.create_producer("public/default/listened")).send(b"hello")


def test_listener_without_a_server_is_named(real: TlsCluster) -> None:
    asyncio.run(produce(real, real.web_url_tls, real.files, "near"))
    with pytest.raises(NotConnected, match=re.escape(real.far_url)):
        asyncio.run(produce(real, real.web_url_tls, real.files, "far"))


def test_client_that_is_refused_is_told_which_certificate(
    real: TlsCluster, authority: Authority, tmp_path: Path
) -> None:
    asyncio.run(produce(real, real.service_url_tls, real.files))
    for files in (None, Authority(tmp_path).issue("admin"), authority.issue("old", expired=True)):
        words = f"refuses the client certificate {files.certificate} " if files else "asks for a client certificate"
        for url in (real.service_url_tls, real.web_url_tls):
            with pytest.raises(CertificateError, match=f"{re.escape(url)} {words}"):
                asyncio.run(produce(real, url, files))


def test_command_line_shows_the_certificate_of_its_configuration(
    real: TlsCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = tmp_path / "client.conf"
    conf.write_text(
        f"webServiceUrl={real.web_url_tls}\nauthPlugin={PLUGIN}\ntlsTrustCertsFilePath={real.authority}\n"
        f"tlsCertificateFilePath={real.files.certificate}\ntlsKeyFilePath={real.files.key}\n"
    )
    monkeypatch.setenv("PULSAR_CLIENT_CONF", str(conf))
    configured = Cluster(real.web_url_tls, real.service_url_tls, "real", is_ours=False)
    configured.run("topics create public/default/x")
    configured.produce("x", "-m", "hello")
    assert configured.consume("x", "-s", "s", "-p", "Earliest", "-n", "1")[0].endswith("content:hello")


@pytest.mark.spark
def test_messages_travel_with_the_registered_certificate_and_no_key_is_shown(
    ours: Cluster, real: TlsCluster, tmp_path: Path
) -> None:
    pair = Pair(ours, real).begin()
    files = f"--tls-certs-filepath {real.files.certificate} --tls-key-filepath {real.files.key}"
    ours.run(f"clusters update real {real.record} {files} --listener-name near")
    topic = pair.topic("there")
    ours.run(f"topics create-partitioned-topic {topic} -p 1")
    ours.run(f"topics set-replication-clusters {topic} -c {pair.both}")

    jobs, seen = tmp_path / "jobs", tmp_path / "seen"
    jobs.mkdir()
    seen.mkdir()
    here = {"cluster": ours.name, "service_url": ours.service_url, "admin_url": ours.web_url}
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.eventLog.dir": seen.as_uri()}
    config = job_config(jobs / "there.toml", "from_policies = true", ("source", here), conf=conf)
    ours_client, real_client = pulsar.Client(ours.service_url, logger=QUIET), real.client()
    publish_sealed(ours_client, topic)
    command = [sys.executable, "-m", "tests.spark.one_session", str(config)]
    with (seen / "log").open("wb") as log:
        job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
    try:
        until(lambda: copied(seen / "log"), {"real": len(NUMBERS)}, seconds=400)
        assert read(real_client, topic) == NUMBERS
    finally:
        job.communicate()
    ours_client.close()
    real_client.close()
    assert in_files(seen, "physicalPlanDescription"), "plans are there to be looked at"
    secret = real.files.key.read_text().splitlines()[1]
    assert in_files(seen, secret) == in_files(jobs, secret) == []
