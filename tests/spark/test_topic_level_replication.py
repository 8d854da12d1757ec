"""The broker's own job and the replication clusters of single topics: begun, ended and begun again beside others.

Both clusters have ports inside TLS alone, ask for certificates, and know nobody without.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import pytest

from interpulse.client import Credentials, DefaultCryptoKeyReader, TlsOptions
from interpulse.sync import Client
from interpulse.testing import InProcessBroker
from tests.spark import replication_job
from tests.spark.replication_job import wait_until
from tests.support.certificates import Authority, Certificate
from tests.support.cli_cluster import CliCluster
from tests.support.encryption_keys import new_keys

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

NAMESPACE = "public/default"
KEPT = {"brokerDeleteInactiveTopicsEnabled": "false", "retentionCheckIntervalInSeconds": "3600"}


@dataclass(frozen=True)
class SealedCluster(CliCluster):
    """A cluster inside TLS. ``access`` is what clients bring, the command line finds it in its configuration."""

    access: dict[str, Any]

    def client(self):
        return Client(self.service_url, **self.access)


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "authority")


@pytest.fixture
def admin(authority, tmp_path, monkeypatch):
    """The certificate of a super user, which the command line shows."""
    shown = authority.issue("admin")
    conf = tmp_path / "client.conf"
    conf.write_text(
        f"tlsTrustCertsFilePath={authority.file}\nauthPlugin=AuthenticationTls\n"
        f"tlsCertificateFilePath={shown.certificate}\ntlsKeyFilePath={shown.key}\n"
    )
    monkeypatch.setenv("PULSAR_CLIENT_CONF", str(conf))
    return shown


def settings(name, authority: Authority, admin: Certificate):
    served = authority.issue(name)
    return {
        "clusterName": name,
        "brokerServicePort": "",
        "webServicePort": "",
        "brokerServicePortTls": "0",
        "webServicePortTls": "0",
        "tlsCertificateFilePath": str(served.certificate),
        "tlsKeyFilePath": str(served.key),
        "tlsTrustCertsFilePath": str(authority.file),
        "tlsRequireTrustedClientCertOnConnect": "true",
        "authenticationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderTls",
        "authorizationEnabled": "true",
        "superUserRoles": "admin",
        "brokerClientTlsEnabled": "true",
        "brokerClientCertificateFilePath": str(admin.certificate),
        "brokerClientKeyFilePath": str(admin.key),
        **KEPT,
    }


def sealed_cluster(broker, authority, admin):
    access = {"credentials": Credentials.tls(*map(str, admin)), "tls": TlsOptions(str(authority.file))}
    return SealedCluster(broker.web_url, broker.service_url, access)


@pytest.fixture
def east(tmp_path, authority, admin):
    with InProcessBroker(
        tmp_path / "east", {**settings("east", authority, admin), "replicationJobDriverMemory": "600m"}
    ) as broker:
        yield sealed_cluster(broker, authority, admin)


@pytest.fixture
def west(tmp_path, authority, admin):
    own = {"allowAutoTopicCreation": "false", "replicationJob": "external"}
    with InProcessBroker(tmp_path / "west", {**settings("west", authority, admin), **own}) as broker:
        yield sealed_cluster(broker, authority, admin)


def publish_texts(cluster, topic, *values, **sealing):
    with cluster.client() as client, client.create_producer(f"{NAMESPACE}/{topic}", **sealing) as producer:
        for value in values:
            producer.send(value.encode())


def stored_entries(cluster, topic):
    return replication_job.stored_entries(cluster, f"{NAMESPACE}/{topic}", access=cluster.access)


def wait_for(cluster, **counts):
    wait_until(lambda: [stored_entries(cluster, topic) for topic in counts] == [*counts.values()])


def arrived(cluster, topic, **opening):
    found = []
    with cluster.client() as client, client.create_reader(f"{NAMESPACE}/{topic}", **opening) as reader:
        while reader.has_message_available():
            found.append(reader.read_next(60_000).content.decode())
    return found


def keep_to_the_rate(east, west, topics_file):
    """Of 60 entries at 4 a second: never more than came in the time, besides what gathers in one period."""
    east.run(f"topics set-replicator-dispatch-rate {NAMESPACE}/z -md 4")
    rates = {f"persistent://{NAMESPACE}/z": [4, -1, 1, False]}
    wait_until(lambda: json.loads(topics_file.read_text())["rates"] == rates)
    before, started = stored_entries(west, "z"), time.monotonic()
    publish_texts(east, "z", *map(str, range(60)))
    publish_texts(east, "x", *map(str, range(60)))
    wait_for(west, x=stored_entries(east, "x") - 1)
    while (copied := stored_entries(west, "z") - before) < 20:
        assert copied <= 4 * (time.monotonic() - started) + 2 * 4
        assert time.monotonic() - started < 300
    assert time.monotonic() - started > 3
    east.run(f"topics remove-replicator-dispatch-rate {NAMESPACE}/z")
    wait_for(west, z=before + 60)


def test_topics_are_replicated_as_long_as_their_own_policies_say(east, west, authority, admin, tmp_path):
    for here, there, name in ((east, west, "west"), (west, east, "east")):
        here.run(
            f"clusters create {name} --url-secure {there.web_url} --broker-url-secure {there.service_url} --tls-enable "
            f"--tls-trust-certs-filepath {authority.file} --tls-certs-filepath {admin.certificate} "
            f"--tls-key-filepath {admin.key}"
        )
        here.run("tenants update public -c east,west")
    for topic in ("x", "y", "z", "home"):
        east.run(f"topics create {NAMESPACE}/{topic}")
    keys = new_keys(tmp_path, "orders")
    sealing = {"encryption_keys": ["orders"], "crypto_key_reader": DefaultCryptoKeyReader(public_keys=keys.public)}
    for topic in ("x", "y", "z"):
        east.run(f"topics set-replication-clusters {NAMESPACE}/{topic} -c east,west")
        publish_texts(east, topic, "one", **(sealing if topic == "y" else {}))
    publish_texts(east, "home", "one")
    wait_for(west, x=1, y=1, z=1)
    opened = DefaultCryptoKeyReader(private_keys=keys.private)
    assert arrived(west, "y", crypto_key_reader=opened) == ["one"]
    wait_until(lambda: east.json(f"topics replication-status {NAMESPACE}/x -o json")[0]["state"] == "REPLICATING")
    assert east.run(f"topics replication-status {NAMESPACE}/home") == "Nothing is replicated from here.\n"

    east.run(f"topics remove-replication-clusters {NAMESPACE}/x")
    wait_until(lambda: "pulsar.repl.west" not in east.json(f"topics stats-internal {NAMESPACE}/x")["cursors"])
    publish_texts(east, "x", "while no policy asks")
    publish_texts(east, "z", "two")
    wait_for(west, z=2)
    east.run(f"topics set-replication-clusters {NAMESPACE}/x -c east,west")
    publish_texts(east, "x", "three")
    publish_texts(east, "z", "three")
    wait_until(lambda: "three" in arrived(west, "x"))
    wait_for(west, z=3)
    assert arrived(west, "x") == ["one", "three"]
    assert arrived(west, "z") == ["one", "two", "three"]
    keep_to_the_rate(east, west, tmp_path / "east" / "replication" / "west" / "topics.json")
    assert west.run(f"topics list {NAMESPACE}").splitlines() == [f"persistent://{NAMESPACE}/{name}" for name in "xyz"]
