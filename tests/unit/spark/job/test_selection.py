"""Which topics the job takes to which cluster: by the policies of topics, else by those of their namespaces."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import ClusterNotFound, NotAllowed, NotSupported
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.spark.job.pipeline_config import PipelineConfig, Selection
from interpulse.spark.job.selection import select
from interpulse.spark.options.connection_options import Access, access_of

CONFIG = PipelineConfig(
    name="test",
    state=Path("/nowhere"),
    source=ClusterAddress(cluster="east", service_url="pulsar://east:6650", admin_url="http://east:8080"),
    target=None,
    select=Selection(from_policies=True),
)


class Source:
    """The admin API of a source with one namespace; ``own`` are the clusters set for single topics."""

    def __init__(self, clusters, own, *, ours=True, allowed=("east", "west", "north")):
        self.clusters_of_namespace = clusters
        self.own = own
        self.ours = ours
        self.allowed = allowed
        self.asked_for_topics = []
        self.record = {}
        self.tenants = self.namespaces = self.topics = self.clusters = _Families(self)


class _Families:
    def __init__(self, source):
        self._source = source

    async def list(self, parent=None, **options):
        if parent is None:
            return ["demo"]
        if parent == "demo":
            return ["demo/a"]
        system = ["persistent://demo/a/__change_events"] if options.get("system_included") else []
        return ["persistent://demo/a/p-partition-0", "persistent://demo/a/x", *system]

    async def get(self, name):
        if name == "demo":
            return TenantInfo(allowed_clusters=self._source.allowed)
        if name == "south":
            raise ClusterNotFound("south")
        urls = {"service_url": f"http://{name}:8080", "broker_service_url": f"pulsar://{name}:6650"}
        return ClusterData(**{**urls, **self._source.record})

    async def policies(self, namespace):
        return NamespacePolicies(replication_clusters=self._source.clusters_of_namespace)

    async def topics_with_clusters(self, namespace):
        if not self._source.ours:
            raise NotSupported("The broker does not offer it")
        return {f"persistent://demo/a/{name}": clusters for name, clusters in self._source.own.items()}

    async def replication_clusters(self, topic):
        self._source.asked_for_topics.append(topic.local_name)
        if self._source.own is None:
            raise NotAllowed("Topic level policies is disabled")
        return self._source.own.get(topic.local_name)

    async def list_partitioned(self, namespace, **options):
        return ["persistent://demo/a/p"]

    async def partitioned_metadata(self, topic, *, create):
        return PartitionedTopicMetadata(1 if topic.local_name == "p" else 0)


async def selected(source, config=CONFIG):
    found = await select(config, source)
    return {remote: {topic.local_name: count for topic, count in item.topics.items()} for remote, item in found.items()}


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "another"])
@pytest.mark.parametrize(
    ("namespace", "own", "expected"),
    [
        pytest.param(["east"], {}, {}, id="nothing"),
        pytest.param(["east", "west"], {}, {"west": {"p": 1, "x": 0}}, id="namespace"),
        pytest.param(["east"], {"x": ["east", "west"]}, {"west": {"x": 0}}, id="topic-alone"),
        pytest.param(["east", "west"], {"x": ["east"]}, {"west": {"p": 1}}, id="topic-kept-here"),
        pytest.param(
            ["east", "west"], {"p": ["east", "north"]}, {"west": {"x": 0}, "north": {"p": 1}}, id="topic-elsewhere"
        ),
        pytest.param(["east", "south"], {}, {}, id="cluster-not-registered"),
        pytest.param(["north", "west"], {}, {}, id="source-not-listed"),
    ],
)
async def test_topics_go_where_their_policies_say(ours, namespace, own, expected):
    assert await selected(Source(namespace, own, ours=ours)) == expected


async def test_another_broker_is_not_asked_topic_by_topic_when_its_tenant_has_one_cluster():
    source = Source(["east"], {"x": ["east", "west"]}, ours=False, allowed=("east",))
    assert (await selected(source), source.asked_for_topics) == ({}, [])


async def test_another_broker_without_topic_policies_goes_by_its_namespaces():
    assert await selected(Source(["east", "west"], None, ours=False)) == {"west": {"p": 1, "x": 0}}


async def test_system_topics_are_copied_where_the_job_is_told_to_or_clusters_are_set_for_them():
    told = replace(CONFIG, select=Selection(from_policies=True, include_system_topics=True))
    copied = {"west": {"p": 1, "x": 0, "__change_events": 0}}
    assert await selected(Source(["east", "west"], {}), told) == copied
    assert await selected(Source(["east", "west"], {"__change_events": ["east", "west"]})) == copied


async def test_topics_that_a_failover_keeps_at_each_site_are_never_copied():
    """The lease of an operation is exclusive there; the heartbeat is what a switch waits for."""
    names = [f"interpulse-failover-orders{end}" for end in ("", "-reports", "-heartbeat")]
    found = await selected(Source(["east"], dict.fromkeys(names, ("east", "west"))))
    assert found == {"west": {"interpulse-failover-orders-heartbeat": 0}}


TOKEN = {"authentication_plugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken"}
BASIC = {"authentication_plugin": "org.apache.pulsar.client.impl.auth.AuthenticationBasic"}
JO = '{"userId": "jo", "password": "word"}'
GRANT = '{"issuerUrl": "https://issuer", "privateKey": "file:///west.json"}'
TLS = {
    "broker_client_tls_enabled": True,
    "service_url_tls": "https://west:8443",
    "broker_service_url_tls": "pulsar+ssl://west:6651",
    "broker_client_trust_certs_file_path": "/ca.pem",
}
TLS_PLUGIN = {"authentication_plugin": "org.apache.pulsar.client.impl.auth.AuthenticationTls"}
FILES = {"broker_client_certificate_file_path": "/c.pem", "broker_client_key_file_path": "/k.pem"}
SHOWN: dict[str, Any] = {"certificate_file": "/c.pem", "key_file": "/k.pem"}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param({}, ("pulsar://west:6650", "http://west:8080", Access()), id="open"),
        pytest.param(
            TOKEN | {"authentication_parameters": "file:///west.jwt"},
            ("pulsar://west:6650", "http://west:8080", Access("file:///west.jwt", plugin="AuthenticationToken")),
            id="token-file",
        ),
        pytest.param(
            BASIC | {"authentication_parameters": "file:///west.password"},
            ("pulsar://west:6650", "http://west:8080", Access("file:///west.password", plugin="AuthenticationBasic")),
            id="password-file",
        ),
        pytest.param(
            BASIC | {"authentication_parameters": "jo:word"},
            ("pulsar://west:6650", "http://west:8080", Access(JO, plugin="AuthenticationBasic")),
            id="password",
        ),
        pytest.param(
            {"authentication_plugin": "AuthenticationOAuth2", "authentication_parameters": GRANT},
            ("pulsar://west:6650", "http://west:8080", Access(GRANT, plugin="AuthenticationOAuth2")),
            id="issuer",
        ),
        pytest.param(TLS, ("pulsar+ssl://west:6651", "https://west:8443", Access(None, "/ca.pem")), id="tls"),
        pytest.param(
            TLS | {"tls_allow_insecure_connection": True},
            ("pulsar+ssl://west:6651", "https://west:8443", Access(None, "/ca.pem", True)),
            id="any-certificate",
        ),
        pytest.param(
            TLS | {"service_url_tls": None},
            ("pulsar+ssl://west:6651", "http://west:8080", Access(None, "/ca.pem")),
            id="one-tls",
        ),
        pytest.param({"authentication_plugin": "AuthenticationAthenz"}, None, id="cannot-be-used"),
        pytest.param(
            TLS | FILES, ("pulsar+ssl://west:6651", "https://west:8443", Access(None, "/ca.pem", **SHOWN)), id="files"
        ),
        pytest.param(
            TLS | TLS_PLUGIN | {"authentication_parameters": "tlsCertFile:/c.pem,tlsKeyFile:/k.pem"},
            ("pulsar+ssl://west:6651", "https://west:8443", Access(None, "/ca.pem", **SHOWN)),
            id="tls-plug-in",
        ),
        pytest.param(
            TLS | FILES | TOKEN | {"authentication_parameters": "file:///west.jwt"},
            (
                "pulsar+ssl://west:6651",
                "https://west:8443",
                Access("file:///west.jwt", "/ca.pem", **SHOWN, plugin="AuthenticationToken"),
            ),
            id="token-and-files",
        ),
        pytest.param(TLS | TLS_PLUGIN, None, id="tls-plug-in-without-files"),
        pytest.param(TLS | FILES | {"service_url_tls": None}, None, id="files-and-one-tls"),
        pytest.param(FILES, ("pulsar://west:6650", "http://west:8080", Access()), id="files-and-no-tls"),
        pytest.param(
            {"listener_name": "outside"},
            ("pulsar://west:6650", "http://west:8080", Access(listener_name="outside")),
            id="listener",
        ),
        pytest.param({"service_url": None}, None, id="no-address"),
        pytest.param({"service_url": "http://west:99999"}, None, id="no-web-address"),
        pytest.param({"broker_service_url": "pulsar://west:99999"}, None, id="no-broker-address"),
    ],
)
async def test_cluster_is_reached_as_its_record_says(record, expected):
    source = Source(["east", "west"], {})
    source.record = record
    found = (await select(CONFIG, source)).get("west")  # type: ignore[arg-type]
    address = found and found.address
    assert (address and (address.service_url, address.admin_url, access_of(address))) == expected
    assert found is not None
    assert bool(found.problem) == (expected is None)
