"""REST calls to several brokers over one metadata store: what is asked of which of them, and how answers are joined."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.client import AdminClient
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import UnknownError
from interpulse.model.names import NamespaceName
from tests.support.rest_client import call
from tests.support.shared_brokers import SharedBrokers, shared_brokers
from tests.support.stub_web import StubWeb

NAMESPACE = NamespaceName("public", "default")
BASE = "persistent://public/default/p"
PATH = "persistent/public/default/p"


@pytest.fixture
async def brokers() -> AsyncIterator[SharedBrokers]:
    """Three of them, which authenticate by a token where they ask each other."""
    config = BrokerConfig(
        broker_client_authentication_plugin="token", broker_client_authentication_parameters="token:of-the-brokers"
    )
    async with shared_brokers(3, config) as started:
        yield started


# --- peers


async def test_partitions_when_a_peer_cluster_serves_them_then_it_is_named_and_not_asked(
    brokers: SharedBrokers,
) -> None:
    app = brokers[0].app
    async with AdminClient(brokers[0].web_url) as admin:
        await admin.topics.create_partitioned(BASE, 2)
    with StubWeb() as peer:
        await app.clusters.create("peer", ClusterData(service_url=peer.url, broker_service_url="pulsar://127.0.0.1:1"))
        await app.clusters.set_peers("standalone", ["peer"])
        await app.namespaces.update_policies(
            NAMESPACE, lambda old: old.changed(replication_clusters=("peer",), allowed_clusters=())
        )
        reply = await call(brokers[0].web_url, "DELETE", f"{PATH}/partitions?force=true")
        assert peer.asked == []
    assert (reply.status, reply.reason) == (
        412,
        f"Namespace public/default is served by a peer cluster, ask that one: {peer.url}",
    )


async def test_another_broker_when_it_redirects_then_is_followed_to_registered_brokers_only(
    brokers: SharedBrokers,
) -> None:
    others = brokers[0].app.others
    assert others is not None
    with StubWeb() as broker, StubWeb() as stranger:
        broker.answer_raw("GET", "/x", b"", status=307, headers={"Location": f"{stranger.url}/x"})
        with pytest.raises(UnknownError, match="which is not trusted with the credentials"):
            await others.ask(broker.url, "GET", "/x", kind="topic")
        broker.answer_raw("GET", "/y", b"", status=307, headers={"Location": f"{brokers[1].web_url}/livez"})
        assert await others.ask(broker.url, "GET", "/y", kind="topic") == "ok"
        assert stranger.asked == []
