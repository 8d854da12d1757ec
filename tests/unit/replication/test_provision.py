"""Provisioning of a remote topic (PIP-433): what is created, what is held, and races with others."""

import pickle
from functools import partial
from typing import Any, cast

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.admin.schemas import SchemaVersion
from interpulse.model.errors import (
    AlreadyExists,
    AuthenticationError,
    AuthorizationError,
    CertificateError,
    IncompatibleSchema,
    NamespaceNotFound,
    NotConnected,
    OperationTimeout,
    PulsarError,
    RemoteClusterUnavailable,
    SchemaNotFound,
    TopicLimitReached,
    TopicNotFound,
    UnknownError,
)
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.replication.provision import (
    PartitionsDiffer,
    TopicHeld,
    TopicProvisioner,
    copy_schemas,
    describe_problem,
    partition_metadata,
)
from tests.support.stub_web import StubWeb

TOPIC = TopicName.parse("persistent://t/ns/x")
AVRO = SchemaInfo(SchemaType.AVRO, b"{}")
TEXT = SchemaInfo(SchemaType.STRING)


class FakeCluster:
    """Topics with their partition counts (0 = plain) and schemas; stands in for the admin client and its families."""

    def __init__(self, shapes: dict[TopicName, int] | None = None, schemas: list[SchemaInfo] | None = None) -> None:
        self.shapes = shapes or {}
        self.registered = schemas
        self.calls: list[tuple[Any, ...]] = []
        self.rival: int | None = None  # what another one creates just before we do
        self.namespace_missing = False
        self.refused: SchemaInfo | None = None

    @property
    def topics(self) -> "FakeCluster":
        return self

    @property
    def schemas(self) -> "FakeCluster":
        return self

    async def partitioned_metadata(self, topic: TopicName) -> PartitionedTopicMetadata:
        if self.namespace_missing:
            raise NamespaceNotFound("Namespace not found")
        if topic not in self.shapes:
            raise TopicNotFound(f"Topic {topic} not found")
        return PartitionedTopicMetadata(self.shapes[topic])

    async def create(self, topic: TopicName) -> None:
        await self.create_partitioned(topic, 0, local_only=True)

    async def create_partitioned(self, topic: TopicName, partitions: int, *, local_only: bool) -> None:
        self.calls.append(("create", topic, partitions, local_only))
        if self.rival is not None:
            self.shapes[topic] = self.rival
        if topic in self.shapes:
            raise AlreadyExists("This topic already exists")
        self.shapes[topic] = partitions

    async def expand(self, topic: TopicName, partitions: int, *, local_only: bool) -> None:
        self.calls.append(("expand", topic, partitions, local_only))
        self.shapes[topic] = partitions

    async def history(self, topic: TopicName) -> list[SchemaVersion]:
        if self.registered is None:
            raise SchemaNotFound("Schema not found")
        return [SchemaVersion(2 * number, schema, 0) for number, schema in enumerate(self.registered)]

    async def upload(self, topic: TopicName, schema: SchemaInfo) -> int:
        if schema == self.refused:
            raise IncompatibleSchema("Incompatible schema: FULL")
        self.calls.append(("upload", topic, schema))
        return len(self.calls) - 1


def provisioner(source: FakeCluster, target: FakeCluster, **options: bool) -> TopicProvisioner:
    return TopicProvisioner(
        partial(partition_metadata, cast(AdminClient, source)), cast(AdminClient, target), **options
    )


@pytest.mark.parametrize("partitions", [0, 1, 4])
async def test_topic_when_absent_remotely_then_is_created_in_the_same_shape_there_only(partitions: int) -> None:
    source, target = FakeCluster({TOPIC: partitions}), FakeCluster()
    assert (await provisioner(source, target).ensure_topic(TOPIC)).partitions == partitions
    assert target.calls == [("create", TOPIC, partitions, True)]
    assert source.calls == []


async def test_partition_when_given_then_its_base_is_provisioned() -> None:
    source, target = FakeCluster({TOPIC: 3}), FakeCluster()
    assert (await provisioner(source, target).ensure_topic(TOPIC.partition(1))).partitions == 3
    assert target.shapes == {TOPIC: 3}


@pytest.mark.parametrize("partitions", [0, 4])
async def test_topic_when_equal_then_nothing_is_created(partitions: int) -> None:
    source, target = FakeCluster({TOPIC: partitions}), FakeCluster({TOPIC: partitions})
    assert (await provisioner(source, target).ensure_topic(TOPIC)).partitions == partitions
    assert target.calls == []


@pytest.mark.parametrize(("local", "remote"), [(2, 4), (4, 2), (0, 2), (2, 0)])
async def test_topic_when_shapes_differ_then_is_held_and_nothing_changes(local: int, remote: int) -> None:
    source, target = FakeCluster({TOPIC: local}), FakeCluster({TOPIC: remote})
    with pytest.raises(TopicHeld, match=r"on the source cluster and .* on the remote cluster"):
        await provisioner(source, target).ensure_topic(TOPIC)
    assert (source.calls, target.calls) == ([], [])


async def test_topic_when_creation_is_switched_off_then_is_held() -> None:
    source, target = FakeCluster({TOPIC: 2}), FakeCluster()
    with pytest.raises(TopicHeld, match="createTopicToRemoteClusterForReplication") as held:
        await provisioner(source, target, creation_allowed=False).ensure_topic(TOPIC)
    assert held.value.remedy == "create it there as a partitioned topic of 2 partitions"
    assert target.calls == []


async def test_orphan_partition_when_its_base_is_absent_then_is_held() -> None:
    with pytest.raises(TopicHeld, match="does not exist on the source cluster"):
        await provisioner(FakeCluster(), FakeCluster()).ensure_topic(TOPIC.partition(0))


async def test_namespace_when_missing_remotely_then_topic_is_held() -> None:
    target = FakeCluster()
    target.namespace_missing = True
    with pytest.raises(TopicHeld, match="namespace t/ns does not exist on the remote cluster; create t/ns there"):
        await provisioner(FakeCluster({TOPIC: 2}), target).ensure_topic(TOPIC)


async def test_creation_when_another_was_faster_with_the_same_shape_then_succeeds() -> None:
    source, target = FakeCluster({TOPIC: 2}), FakeCluster()
    target.rival = 2
    assert await provisioner(source, target).ensure_topic(TOPIC) == (2, None)


async def test_creation_when_another_was_faster_with_another_shape_then_is_held() -> None:
    source, target = FakeCluster({TOPIC: 2}), FakeCluster()
    target.rival = 5
    with pytest.raises(TopicHeld, match=r"2 partitions .* 5 partitions"):
        await provisioner(source, target).ensure_topic(TOPIC)


async def test_creation_when_refused_again_and_again_then_is_held_with_the_reason() -> None:
    class Stubborn(FakeCluster):
        async def create_partitioned(self, topic: TopicName, partitions: int, *, local_only: bool) -> None:
            raise AlreadyExists("The topic has a max partition index of 7")

    with pytest.raises(TopicHeld, match=r"cannot be created on the remote cluster: .*max partition index of 7"):
        await provisioner(FakeCluster({TOPIC: 2}), Stubborn()).ensure_topic(TOPIC)


async def test_topic_when_source_has_grown_since_then_remote_grows_too() -> None:
    source, target = FakeCluster({TOPIC: 4}), FakeCluster({TOPIC: 2})
    grown = await provisioner(source, target).ensure_topic(TOPIC, equal_before=2)
    assert grown == (4, "x expanded to 4 partitions: the source has grown")
    assert target.calls == [("expand", TOPIC, 4, True)]


async def test_topic_when_remote_has_shrunk_by_recreation_then_is_held() -> None:
    source, target = FakeCluster({TOPIC: 4}), FakeCluster({TOPIC: 2})
    with pytest.raises(PartitionsDiffer):
        await provisioner(source, target).ensure_topic(TOPIC, equal_before=4)


@pytest.mark.parametrize(("remote", "held"), [(2, False), (6, True), (0, True)])
async def test_expansion_when_allowed_then_grows_but_never_shrinks(remote: int, held: bool) -> None:
    target = FakeCluster({TOPIC: remote})
    ensuring = provisioner(FakeCluster({TOPIC: 4}), target, expansion_allowed=True).ensure_topic(TOPIC)
    if held:
        with pytest.raises(TopicHeld):
            await ensuring
    else:
        assert (await ensuring).partitions == 4
    assert target.shapes[TOPIC] == (remote if held else 4)


async def test_cluster_when_unreachable_then_its_error_comes_through() -> None:
    class Gone(FakeCluster):
        async def partitioned_metadata(self, topic: TopicName) -> PartitionedTopicMetadata:
            raise NotConnected("Cannot reach http://x")

    with pytest.raises(NotConnected):
        await provisioner(FakeCluster({TOPIC: 2}), Gone()).ensure_topic(TOPIC)


async def test_source_when_it_cannot_be_asked_then_the_remote_cluster_is_not_blamed() -> None:
    class Gone(FakeCluster):
        async def partitioned_metadata(self, topic: TopicName) -> PartitionedTopicMetadata:
            raise NotConnected("Cannot reach http://x")

        async def history(self, topic: TopicName) -> list[SchemaVersion]:
            raise AuthenticationError("token expired")

    target = FakeCluster()
    with pytest.raises(TopicHeld, match=r"the source cluster cannot be asked for .*Cannot reach http://x"):
        await provisioner(Gone(), target).ensure_topic(TOPIC)
    with pytest.raises(TopicHeld, match=r"the source cluster cannot be asked for .*token expired"):
        await copy_schemas(cast(AdminClient, Gone()), TOPIC, target.upload)
    assert target.calls == []


async def test_topic_when_it_grows_while_the_remote_cluster_takes_its_time_then_is_created_as_it_is_now() -> None:
    class Slow(FakeCluster):
        async def partitioned_metadata(self, topic: TopicName) -> PartitionedTopicMetadata:
            source.shapes[TOPIC] = 4
            return await super().partitioned_metadata(topic)

    source, target = FakeCluster({TOPIC: 2}), Slow()
    assert (await provisioner(source, target).ensure_topic(TOPIC)).partitions == 4
    assert target.calls == [("create", TOPIC, 4, True)]


async def test_schemas_when_there_are_none_then_nothing_is_registered() -> None:
    target = FakeCluster()
    await copy_schemas(cast(AdminClient, FakeCluster()), TOPIC, target.upload)
    assert target.calls == []


async def test_schemas_when_registered_then_come_in_their_order_under_the_base_name() -> None:
    target = FakeCluster()
    await copy_schemas(cast(AdminClient, FakeCluster(schemas=[AVRO, TEXT])), TOPIC.partition(1), target.upload)
    assert target.calls == [("upload", TOPIC, AVRO), ("upload", TOPIC, TEXT)]


async def test_schema_when_refused_then_topic_is_held_and_later_ones_wait() -> None:
    target = FakeCluster()
    target.refused = AVRO
    with pytest.raises(TopicHeld, match=r"version 0 .*: Incompatible schema: FULL; relax .* \(schemas delete "):
        await copy_schemas(cast(AdminClient, FakeCluster(schemas=[AVRO, TEXT])), TOPIC, target.upload)
    assert target.calls == []


async def test_cluster_when_it_answers_nonsense_then_is_no_broker() -> None:
    with StubWeb() as web:
        web.answer("GET", "/admin/v2/persistent/t/ns/x/partitions", ["ok"])
        async with AdminClient(web.url) as nonsense:
            with pytest.raises(UnknownError, match=f"{web.url} answered .* with something other than an object"):
                await partition_metadata(nonsense, TOPIC)


@pytest.mark.parametrize(
    ("problem", "state", "remedy"),
    [
        pytest.param(TopicHeld("t", "counts differ", "make them equal"), "HELD", "make them equal", id="held"),
        pytest.param(NotConnected("Cannot reach http://x"), "DISCONNECTED", "see that west is up", id="away"),
        pytest.param(OperationTimeout("no answer"), "DISCONNECTED", "see that west is up", id="silent"),
        pytest.param(RemoteClusterUnavailable("no serviceUrl"), "DISCONNECTED", "clusters get west", id="no-address"),
        pytest.param(AuthenticationError("token expired"), "HELD", "credentials", id="unknown-there"),
        pytest.param(CertificateError("/k.pem is locked"), "HELD", "--tls-key-filepath", id="own-certificate"),
        pytest.param(AuthorizationError("no rights"), "HELD", "credentials", id="not-allowed-there"),
        pytest.param(UnknownError("HTTP 500"), "HELD", "see the log of west", id="fails"),
        pytest.param(TopicLimitReached("no more"), "HELD", "end on west what the reason names", id="limit"),
        pytest.param(TopicNotFound("404 page not found"), "HELD", "the address leads there", id="no-broker"),
    ],
)
def test_problem_has_a_state_a_reason_and_a_remedy(problem: PulsarError, state: str, remedy: str) -> None:
    found = describe_problem("west", problem)
    assert (found.state, remedy in found.remedy) == (state, True)
    assert found.reason in str(problem)


def test_held_topic_when_pickled_then_keeps_everything() -> None:
    held = pickle.loads(pickle.dumps(TopicHeld("t", "because", "do this")))
    assert (str(held), held.topic, held.reason, held.remedy) == ("because; do this", "t", "because", "do this")
