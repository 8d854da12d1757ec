"""What replicators may do that other producers may not, asked over the raw binary protocol: schemas and missing topics.

The same questions go to a broker of ours and to a real one.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient

CLIENT, REPLICATOR = "somebody", "pulsar.repl.west-->east"
PLAIN_REPLICATOR = "pulsar.repl.west"
"""As clusters before 2.8 name them."""

_FIRST = SchemaInfo(SchemaType.AVRO, b'{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}')
_SECOND = SchemaInfo(
    SchemaType.AVRO,
    b'{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":0}]}',
)
DISABLED = "IncompatibleSchema: schema auto updating is disabled"


@dataclass(frozen=True)
class SchemaSwitch:
    """``is_allow_auto_update_schema`` of a namespace, and the same for replicators; None = never set."""

    allowed: bool | None
    with_replicator: bool | None = None

    def may_update(self, producer: str) -> bool:
        """While the broker itself allows it."""
        if self.allowed is not False:
            return True
        return producer.startswith("pulsar.repl") and self.with_replicator is not False


SWITCHES = (
    SchemaSwitch(None),
    SchemaSwitch(True),
    SchemaSwitch(True, True),
    SchemaSwitch(False),
    SchemaSwitch(False, True),
    SchemaSwitch(False, False),
)


def expected_answers(switch: SchemaSwitch, producer: str, *, is_ours: bool) -> dict[str, str]:
    """The table; a real broker takes a schema for a client's unless the command names its producer."""
    answers = {}
    for front_end in _FRONT_ENDS:
        asked_by = producer if is_ours or front_end != "unnamed" else CLIENT
        allowed = switch.may_update(asked_by)
        answers[f"{front_end}: first"] = "version 0" if allowed else DISABLED
        answers[f"{front_end}: known"] = "version 0"
        answers[f"{front_end}: second"] = "version 1" if allowed else DISABLED
    return answers


async def schema_answers(
    service_url: str, admin: AdminClient, namespace: str, switch: SchemaSwitch, producer: str
) -> dict[str, str]:
    """What each front end says to a first schema, to one the topic has, and to a second one."""
    await admin.namespaces.create(namespace)
    if switch.allowed is not None:
        await admin.namespaces.set_auto_update_schema_allowed(
            namespace, switch.allowed, with_replicator=switch.with_replicator
        )
    said = {}
    for front_end, ask in _FRONT_ENDS.items():
        for what, present, new in (("first", None, _FIRST), ("known", _FIRST, _FIRST), ("second", _FIRST, _SECOND)):
            topic = f"persistent://{namespace}/{front_end.replace(' ', '-')}-{what}"
            await admin.topics.create(topic)
            if present is not None:
                await admin.schemas.upload(topic, present)  # an operator is not bound by the switches
            said[f"{front_end}: {what}"] = await asyncio.to_thread(_ask, service_url, ask, topic, producer, new)
    return said


def _ask(service_url: str, ask: Callable[[RawClient, str, str, SchemaInfo], object], *rest: object) -> str:
    with RawClient(service_url) as client:
        answer = ask(client, *rest)  # type: ignore[arg-type]
    if isinstance(answer, pb.CommandProducerSuccess):
        return f"version {int.from_bytes(answer.schema_version, 'big')}"
    if isinstance(answer, pb.CommandGetOrCreateSchemaResponse):
        if not answer.HasField("error_code"):
            return f"version {int.from_bytes(answer.schema_version, 'big')}"
        return _refusal(answer.error_code, answer.error_message)
    assert isinstance(answer, pb.CommandError), answer
    return _refusal(answer.error, answer.message)


def _refusal(code: pb.ServerError.ValueType, message: str) -> str:
    name = pb.ServerError.Name(code)
    return f"{name}: schema auto updating is disabled" if "schema auto updating is disabled" in message else name


def _open(client: RawClient, topic: str, producer: str, schema: SchemaInfo | None) -> object:
    client.ask(commands.lookup(1, topic))  # a real broker owns a topic once it was looked up
    return client.ask(commands.producer(2, 1, topic, name=producer, schema=schema))


def _named(client: RawClient, topic: str, producer: str, schema: SchemaInfo) -> object:
    """As replicators of 5.0 register: with the name of their producer."""
    client.ask(commands.lookup(1, topic))
    return client.ask(commands.get_or_create_schema(2, topic, schema, producer_name=producer))


def _unnamed(client: RawClient, topic: str, producer: str, schema: SchemaInfo) -> object:
    """As replicators of 4.x register: the producer is open on the same connection, its name is not in the command."""
    _open(client, topic, producer, None)
    return client.ask(commands.get_or_create_schema(3, topic, schema))


_FRONT_ENDS: dict[str, Callable[[RawClient, str, str, SchemaInfo], object]] = {
    "producer": _open,
    "named": _named,
    "unnamed": _unnamed,
}


def may_create(service_url: str, topic: str, producer: str) -> str:
    """What a producer hears that asks for a missing topic: ``created``, or the name of the refusal."""
    with RawClient(service_url) as client:
        answer = client.ask(commands.producer(1, 1, topic, name=producer))
    return pb.ServerError.Name(answer.error) if isinstance(answer, pb.CommandError) else "created"


async def replicators_are_known_by_the_dot(service_url: str, web_url: str) -> None:
    """Where one producer is allowed: what limits and statistics make of names that begin like a replicator's."""
    namespace = f"public/dots-{uuid.uuid4().hex[:8]}"
    topic = f"persistent://{namespace}/x"
    async with AdminClient(web_url) as admin:
        await admin.namespaces.create(namespace)
        await admin.namespaces.set_policy(namespace, "max_producers", 1)
        await admin.topics.create(topic)
        with ExitStack() as clients:

            def open_producer(name: str) -> bool:
                client = clients.enter_context(RawClient(service_url))
                answer = _open(client, topic, name, None)
                return isinstance(answer, pb.CommandProducerSuccess)

            names = (CLIENT, REPLICATOR, "pulsar.repl.north", "pulsar.replica")
            opened = [name for name in names if await asyncio.to_thread(open_producer, name)]
            assert opened == [CLIENT, REPLICATOR, "pulsar.repl.north"]
            stats = await admin.topics.stats(topic)
    assert [each["producerName"] for each in stats["publishers"]] == [CLIENT]
    assert sorted(stats["replication"]) == ["north", "west"]
    for each in stats["replication"].values():
        assert (each["connected"], each["msgInCount"], each["msgOutCount"]) == (False, 0, 0)
        assert each["inboundConnection"].startswith("/127.0.0.1:")
