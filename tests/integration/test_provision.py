"""Provisioning between two brokers of ours: the remote one creates nothing by itself."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.replication.provision import TopicHeld, TopicProvisioner, copy_schemas, partition_metadata
from interpulse.testing import InProcessBroker

TOPIC = TopicName.parse("persistent://public/default/flights")
AVRO = SchemaInfo(SchemaType.AVRO, b'{"type":"record","name":"F","fields":[]}', {"a": "b"})


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[tuple[InProcessBroker, InProcessBroker]]:
    """East, where topics are, and west, where asking creates nothing."""
    east = InProcessBroker(tmp_path / "east", {"clusterName": "east"})
    west = InProcessBroker(tmp_path / "west", {"clusterName": "west", "allowAutoTopicCreation": "false"})
    with east, west:
        yield east, west


async def test_topic_when_provisioned_then_exists_remotely_with_its_schemas(
    brokers: tuple[InProcessBroker, InProcessBroker],
) -> None:
    async with AdminClient(brokers[0].web_url) as east, AdminClient(brokers[1].web_url) as west:
        provisioner = TopicProvisioner(partial(partition_metadata, east), west)
        await east.topics.create_partitioned(TOPIC, 4)
        await east.schemas.upload(TOPIC, AVRO)
        assert await provisioner.ensure_topic(TOPIC.partition(2)) == (
            4,
            "flights created with 4 partitions: it was absent there",
        )
        assert (await west.topics.partitioned_metadata(TOPIC)).partitions == 4
        assert len(await west.topics.list("public/default")) == 4
        await copy_schemas(east, TOPIC, west.schemas.upload)
        assert (await west.schemas.get(TOPIC)).schema == AVRO
        await east.topics.expand(TOPIC, 6, local_only=True)
        with pytest.raises(TopicHeld, match=r"6 partitions .* 4 partitions"):
            await provisioner.ensure_topic(TOPIC)
        assert (await provisioner.ensure_topic(TOPIC, equal_before=4)).partitions == 6


async def test_plain_topic_when_provisioned_then_exists_remotely(
    brokers: tuple[InProcessBroker, InProcessBroker],
) -> None:
    async with AdminClient(brokers[0].web_url) as east, AdminClient(brokers[1].web_url) as west:
        await east.topics.create(TOPIC)
        assert (await TopicProvisioner(partial(partition_metadata, east), west).ensure_topic(TOPIC)).partitions == 0
        assert await west.topics.list("public/default") == [str(TOPIC)]


async def test_namespace_when_missing_remotely_then_topic_is_held(
    brokers: tuple[InProcessBroker, InProcessBroker],
) -> None:
    topic = TopicName.parse("persistent://public/east-only/flights")
    async with AdminClient(brokers[0].web_url) as east, AdminClient(brokers[1].web_url) as west:
        await east.namespaces.create("public/east-only")
        await east.topics.create(topic)
        with pytest.raises(TopicHeld, match="namespace public/east-only does not exist on the remote cluster"):
            await TopicProvisioner(partial(partition_metadata, east), west).ensure_topic(topic)
