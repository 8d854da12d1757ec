"""Health and settings over REST."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.testing.broker import InProcessBroker
from tests.support.rest_broker import RestBroker, rest_broker
from tests.support.rest_client import call

PROBES = ["brokers/health", "brokers/ready", "/readyz"]


@pytest.mark.parametrize("path", PROBES)
async def test_health_when_the_broker_is_ready_is_ok(broker: RestBroker, path: str) -> None:
    reply = await call(broker.web_url, "GET", path)
    assert (reply.status, reply.body) == (200, b"ok")


@pytest.mark.parametrize("path", PROBES)
async def test_health_when_the_broker_is_not_ready_is_unavailable(broker: RestBroker, path: str) -> None:
    broker.app.ready = False
    assert (await call(broker.web_url, "GET", path)).status == 503
    assert (await call(broker.web_url, "GET", "/livez")).body == b"ok"


async def test_health_when_the_store_is_gone_is_no_ok(broker: RestBroker) -> None:
    await broker.store.close()
    assert (await call(broker.web_url, "GET", "brokers/health")).status == 500


@pytest.mark.parametrize("there", [True, False])
async def test_status_page_when_its_file_is_there_then_is_ok_as_long_as_the_broker_is_ready(
    tmp_path: Path, there: bool
) -> None:
    file = tmp_path / "in-rotation"
    if there:
        file.touch()
    async with rest_broker(BrokerConfig(status_file_path=str(file))) as broker:
        reply = await call(broker.web_url, "GET", "/status.html")
        assert (reply.status, reply.body == b"OK") == ((200, True) if there else (404, False))
        assert reply.headers["Content-Type"].startswith("text/plain" if there else "application/json")
        broker.app.ready = False
        assert (await call(broker.web_url, "GET", "/status.html")).status == 404


async def test_status_page_when_no_file_is_named_then_is_not_found(broker: RestBroker) -> None:
    assert (await call(broker.web_url, "GET", "/status.html")).status == 404


async def test_runtime_configuration_is_all_texts_and_follows_changes(broker: RestBroker) -> None:
    await call(broker.web_url, "POST", "brokers/configuration/defaultNumPartitions/3")
    runtime = (await call(broker.web_url, "GET", "brokers/configuration/runtime")).json
    assert all(isinstance(value, str) for value in runtime.values())
    assert (runtime["defaultNumPartitions"], runtime["allowAutoTopicCreation"]) == ("3", "true")


async def test_dynamic_setting_decides_the_next_question(broker: RestBroker) -> None:
    question = "persistent/public/default/x/partitions?checkAllowAutoCreation=true"
    await call(broker.web_url, "POST", "brokers/configuration/allowAutoTopicCreation/false")
    assert (await call(broker.web_url, "GET", question)).status == 404
    await call(broker.web_url, "DELETE", "brokers/configuration/allowAutoTopicCreation")
    await call(broker.web_url, "POST", "brokers/configuration/allowAutoTopicCreationType/partitioned")
    await call(broker.web_url, "POST", "brokers/configuration/defaultNumPartitions/4")
    assert (await call(broker.web_url, "GET", question)).json == {"partitions": 4, "deleted": False}


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
async def test_operator_creates_topics_whatever_the_policy_for_clients(broker: RestBroker, domain: str) -> None:
    await call(broker.web_url, "POST", "brokers/configuration/allowAutoTopicCreation/false")
    assert (await call(broker.web_url, "PUT", f"{domain}/public/default/x")).status == 204
    assert (await call(broker.web_url, "GET", f"{domain}/public/default")).json == [f"{domain}://public/default/x"]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("defaultNumPartitions/-1", "must be at least 1"),
        ("allowAutoTopicCreationType/many", "must be one of non-partitioned, partitioned"),
        ("clusterName/x", "non-dynamic configuration clusterName"),
        ("defaultNumPartition/1", "nearest dynamic one is defaultNumPartitions"),
    ],
)
async def test_setting_that_cannot_be_says_what_is_allowed(broker: RestBroker, setting: str, words: str) -> None:
    reply = await call(broker.web_url, "POST", f"brokers/configuration/{setting}")
    assert reply.status == 412
    assert words in reply.reason


async def test_dynamic_settings_survive_a_restart_and_go_back_to_the_start_when_deleted(tmp_path: Path) -> None:
    settings = {"defaultNumPartitions": "8"}
    path = "brokers/configuration"
    with InProcessBroker(tmp_path, settings) as broker:
        assert (await call(broker.web_url, "POST", f"{path}/allowAutoTopicCreationType/partitioned")).status == 204
        assert (await call(broker.web_url, "POST", f"{path}/maxNumPartitionsPerPartitionedTopic/5")).status == 204
    with InProcessBroker(tmp_path, settings) as broker:
        values = (await call(broker.web_url, "GET", f"{path}/values")).json
        assert values == {"allowAutoTopicCreationType": "partitioned", "maxNumPartitionsPerPartitionedTopic": "5"}
        assert (await call(broker.web_url, "GET", f"{path}/runtime")).json["defaultNumPartitions"] == "5"
        question = "persistent/public/default/x/partitions?checkAllowAutoCreation=true"
        assert (await call(broker.web_url, "GET", question)).json == {"partitions": 5, "deleted": False}
        await call(broker.web_url, "DELETE", f"{path}/maxNumPartitionsPerPartitionedTopic")
        assert (await call(broker.web_url, "GET", f"{path}/runtime")).json["defaultNumPartitions"] == "8"


async def test_bundles_that_are_owned_are_those_of_every_namespace_that_has_this_cluster(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "namespaces/public/two", {"bundles": {"numBundles": 2}})
    (this,) = (await call(broker.web_url, "GET", "brokers")).json
    owned = (await call(broker.web_url, "GET", f"brokers/standalone/{this}/ownedNamespaces")).json
    assert owned["public/two/0x80000000_0xffffffff"] == {
        "broker_assignment": "shared",
        "is_controlled": False,
        "is_active": True,
    }
    assert [name for name in owned if name.startswith("public/two/")] == [
        "public/two/0x00000000_0x80000000",
        "public/two/0x80000000_0xffffffff",
    ]
    assert (await call(broker.web_url, "GET", f"brokers/elsewhere/{this}/ownedNamespaces")).status == 404
