"""PRODUCER, SEND, CLOSE_PRODUCER."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from interpulse.broker.binary.schemas import requested_schema
from interpulse.broker.binary.transport.context import CommandConnection, being_opened
from interpulse.broker.binary.transport.sinks import BinaryProducerSink, OpenProducer
from interpulse.broker.live.api import AccessMode, InitialPosition, ProducerRequest
from interpulse.broker.live.registry.topic_tasks import AnyTopic
from interpulse.model.errors import AlreadyExists, ChecksumError, NoRoomLeft, NotAllowed
from interpulse.model.names import TopicName
from interpulse.model.schemas import version_to_bytes
from interpulse.model.topics import Requester
from interpulse.rules.replication import sending_cluster
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import accept_entry
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import Frame, SendRun


def on_sends(connection: CommandConnection, run: SendRun) -> Sequence[SendRun]:
    """Publish a run. Return SENDs that the producer must check one by one as runs of one."""
    producer_id, sequence_ids, entries = run
    opened = _opened(connection, producer_id)
    if opened is None:
        return ()
    if len(entries) > 1 and not opened.producer.takes_run(sequence_ids, entries):
        return run.singles()
    opened.publishes.add(entries)
    opened.producer.publish(sequence_ids, entries)
    return ()


def on_send(connection: CommandConnection, frame: Frame) -> None:
    send, entry = frame.command.send, frame.entry
    producer_id = send.producer_id
    opened = _opened(connection, producer_id)
    if opened is None:
        return
    if entry is None:
        raise RemoteProtocolError("SEND without an entry")
    opened.publishes.add((entry,))
    accepted = accept_entry(entry)
    if accepted is None:
        error = ChecksumError("Checksum failed on the broker")
        opened.sink.send_failed(producer_id, max(send.sequence_id, send.highest_sequence_id), error)
        return
    count = max(send.num_messages, 1)  # 0 or less would refund permits of consumers and rates
    opened.producer.publish(
        (send.sequence_id,),
        (bytes(accepted),),  # copies only a view
        highest_sequence_id=send.highest_sequence_id or -1,
        num_messages=count,
        is_chunk=send.is_chunk,
        marker=send.marker,
    )


def _opened(connection: CommandConnection, producer_id: int) -> OpenProducer | None:
    """Return the producer of a SEND; None if the SEND crossed its closing. Raises RemoteProtocolError."""
    opened = connection.producers.get(producer_id)
    if opened is None and not connection.recently_closed(producer_id):
        raise RemoteProtocolError(f"SEND for producer {producer_id}, which is not open")
    return opened


async def on_producer(connection: CommandConnection, request: pb.CommandProducer) -> None:
    producer_id = request.producer_id
    opened = connection.producers.get(producer_id)
    if opened is None:
        with being_opened(connection.opening_producers, producer_id, "Producer"):
            opened = await _open(connection, request)
    connection.output.send(opened.success(request.request_id))


async def on_close_producer(connection: CommandConnection, request: pb.CommandCloseProducer) -> None:
    producer_id = request.producer_id
    opening = connection.opening_producers.get(producer_id)
    if opening is not None:
        await asyncio.wait([opening])
    opened = connection.producers.get(producer_id)
    if opened is not None:
        await opened.publishes.drained()
        connection.forget_producer(producer_id)
        opened.producer.close()
    connection.output.send(commands.success(request.request_id))


async def _open(connection: CommandConnection, request: pb.CommandProducer) -> OpenProducer:
    topic = TopicName.parse(request.topic)
    context = connection.context
    if topic.is_persistent:
        context.check_disk_space()
    replicator = connection.calls_itself_replicator(request.producer_name)
    requester = Requester.REPLICATOR if replicator else Requester.CLIENT
    live = await context.registry.open(topic, by=requester, create=True)
    asked = _live_request(connection, request, replicator)
    live.failover_gate.check_producer(asked)  # before the schema, which a refused producer must not register
    schema = requested_schema(request)
    version = await context.schemas.admit_producer(topic, schema, by=requester)
    if request.initial_subscription_name and topic.is_persistent:
        await _create_initial_subscription(live, request.initial_subscription_name)
    sink = BinaryProducerSink(connection, request, topic.partition_index)
    producer = await live.add_producer(asked, sink)
    schema_version = b"" if version is None else version_to_bytes(version)
    if topic.is_persistent:
        try:
            context.check_disk_space()
        except NoRoomLeft:  # the disk became full meanwhile, after the others were closed
            producer.close()
            raise
    opened = OpenProducer(producer, live, sink, sink.publishes, schema_version)
    if connection.lost:
        producer.close()
    else:
        connection.producers[request.producer_id] = opened
    return opened


async def _create_initial_subscription(topic: AnyTopic, subscription: str) -> None:
    if subscription in topic.subscription_names():
        return
    if not topic.settings.auto_subscription_creation_allowed:
        raise NotAllowed(
            "Could not create the initial subscription due to the auto subscription creation is not allowed."
        )
    with contextlib.suppress(AlreadyExists):
        await topic.create_subscription(subscription, initial=InitialPosition.EARLIEST)


def _live_request(connection: CommandConnection, request: pb.CommandProducer, replicator: bool) -> ProducerRequest:
    return ProducerRequest(
        producer_id=request.producer_id,
        name=request.producer_name or None,
        user_provided_name=request.user_provided_producer_name,
        epoch=request.epoch,
        access_mode=AccessMode(request.producer_access_mode),
        topic_epoch=request.topic_epoch if request.HasField("topic_epoch") else None,
        encrypted=request.encrypted,
        metadata={pair.key: pair.value for pair in request.metadata},
        address=connection.address,
        client_version=connection.protocol.connect.client_version,
        remote=replicator,
        by_source_position=_is_known_by_source_position(connection, request),
        remote_cluster=(
            sending_cluster(request.producer_name, connection.context.replicator_prefix) if replicator else None
        ),
    )


def _is_known_by_source_position(connection: CommandConnection, request: pb.CommandProducer) -> bool:
    """Return True if the client may be a replicator that expects source positions in receipts.

    The role does not matter: replicators expect them because the broker announces the feature. All Java clients
    announce it, so the entries distinguish replicators from other clients with such a name.
    """
    is_named_so = request.producer_name.startswith(connection.context.replicator_prefix)
    understood = connection.protocol.peer_flags.supports_repl_dedup_by_lid_and_eid
    return is_named_so and understood and TopicName.parse(request.topic).is_persistent
