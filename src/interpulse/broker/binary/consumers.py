"""SUBSCRIBE and the commands of an open consumer."""

from __future__ import annotations

import asyncio
from typing import Final

from interpulse.broker.binary.schemas import requested_schema
from interpulse.broker.binary.transport.context import CommandConnection, being_opened
from interpulse.broker.binary.transport.sinks import BinaryConsumerSink, OpenConsumer
from interpulse.broker.live.api import InitialPosition, KeyRange, KeySharing, SubscribeRequest, SubType
from interpulse.broker.live.registry.topic_tasks import AnyTopic
from interpulse.model.errors import ConsumerAssignError, ConsumerNotFound, MetadataError, PulsarError, ServiceNotReady
from interpulse.model.ids import MessageId, Position
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaType
from interpulse.model.topics import Requester
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import AckRun, FlowRun, Frame
from interpulse.wire.ids import message_id_from_wire, message_id_to_wire, position_from_wire

_CONSUMER_STATS: Final = (
    "msgRateOut",
    "msgThroughputOut",
    "msgRateRedeliver",
    "consumerName",
    "availablePermits",
    "unackedMessages",
    "blockedConsumerOnUnackedMsgs",
    "address",
    "connectedSince",
    "messageAckRate",
)

_SUBSCRIPTION_STATS: Final = ("type", "msgRateExpired", "msgBacklog")


def on_flow(connection: CommandConnection, frame: Frame) -> None:
    flow = frame.command.flow
    opened = connection.consumers.get(flow.consumer_id)
    if opened is not None:
        _grant(opened, flow.messagePermits)


def on_flows(connection: CommandConnection, run: FlowRun) -> tuple[()]:
    opened = connection.consumers.get(run.consumer_id)
    if opened is not None:
        _grant(opened, run.permits * run.times)
    return ()


def _grant(opened: OpenConsumer, permits: int) -> None:
    if not opened.sink.ready:
        opened.sink.send_notices()
    opened.consumer.flow(permits)


def on_ack(connection: CommandConnection, frame: Frame) -> None:
    ack = frame.command.ack
    opened = connection.consumers.get(ack.consumer_id)
    if ack.HasField("request_id") and (serving := connection.context.serving) is not None and not serving():
        failure: PulsarError | None = ServiceNotReady("The broker may have lost the topic; acknowledge again")
    else:
        failure = ConsumerNotFound("Consumer not found") if opened is None else _acknowledge(opened, ack)
    if ack.HasField("request_id"):
        connection.output.send(commands.ack_response(ack.consumer_id, ack.request_id, failure))


def on_acks(connection: CommandConnection, run: AckRun) -> tuple[()]:
    opened = connection.consumers.get(run.consumer_id)
    if opened is not None:
        opened.consumer.acknowledge(*run.positions)
    return ()


def on_redeliver(connection: CommandConnection, frame: Frame) -> None:
    request = frame.command.redeliverUnacknowledgedMessages
    opened = connection.consumers.get(request.consumer_id)
    if opened is not None:
        epoch = request.consumer_epoch if request.HasField("consumer_epoch") else None
        opened.consumer.redeliver([position_from_wire(message_id) for message_id in request.message_ids], epoch)


async def on_subscribe(connection: CommandConnection, request: pb.CommandSubscribe) -> None:
    consumer_id = request.consumer_id
    if consumer_id in connection.consumers:
        connection.output.send(commands.success(request.request_id))
        return
    with being_opened(connection.opening_consumers, consumer_id, "Consumer"):
        await _open(connection, request)


async def on_close_consumer(connection: CommandConnection, request: pb.CommandCloseConsumer) -> None:
    opening = connection.opening_consumers.get(request.consumer_id)
    if opening is not None:
        await asyncio.wait([opening])
    opened = connection.consumers.pop(request.consumer_id, None)
    if opened is not None:
        opened.consumer.close()
    connection.output.send(commands.success(request.request_id))


async def on_unsubscribe(connection: CommandConnection, request: pb.CommandUnsubscribe) -> None:
    opened = _opened(connection, request.consumer_id)
    await opened.consumer.unsubscribe(request.force)
    connection.consumers.pop(request.consumer_id, None)
    connection.output.send(commands.success(request.request_id))


async def on_seek(connection: CommandConnection, request: pb.CommandSeek) -> None:
    opened = _opened(connection, request.consumer_id)
    if request.HasField("message_id"):
        await opened.consumer.seek(message_id_from_wire(request.message_id), tuple(request.message_id.ack_set))
    elif request.HasField("message_publish_time"):
        await opened.consumer.seek_to_time(request.message_publish_time)
    else:
        raise MetadataError("Message id and message publish time were not present")
    connection.output.send(commands.success(request.request_id))


async def on_get_last_message_id(connection: CommandConnection, request: pb.CommandGetLastMessageId) -> None:
    opened = _opened(connection, request.consumer_id)
    consumer = opened.consumer
    last = await opened.topic.last_message(read_compacted=consumer.request.read_compacted)
    cursor = consumer.request.copied_cursor
    mark_delete = None if cursor is None else opened.topic.promised_position(cursor)
    if mark_delete is None:
        mark_delete = opened.topic.mark_delete_position(consumer.subscription_name)
    last_id = MessageId(*last.position, opened.topic.name.partition_index, last.batch_index)
    answer = pb.CommandGetLastMessageIdResponse(
        request_id=request.request_id,
        last_message_id=message_id_to_wire(last_id),
        consumer_mark_delete_position=message_id_to_wire(mark_delete),
    )
    connection.output.send(commands.encode(answer))


async def on_consumer_stats(connection: CommandConnection, request: pb.CommandConsumerStats) -> None:
    opened = _opened(connection, request.consumer_id)
    stats = opened.consumer.stats()
    stats["availablePermits"] = max(stats["availablePermits"], 0)
    subscription = opened.topic.stats()["subscriptions"].get(opened.consumer.subscription_name, {})
    answer = pb.CommandConsumerStatsResponse(
        request_id=request.request_id,
        **{field: stats[field] for field in _CONSUMER_STATS},
        **{field: subscription[field] for field in _SUBSCRIPTION_STATS if field in subscription},
    )
    connection.output.send(commands.encode(answer))


def _acknowledge(opened: OpenConsumer, ack: pb.CommandAck) -> PulsarError | None:
    consumer = opened.consumer
    try:
        if ack.ack_type == pb.CommandAck.Cumulative:
            for message_id in ack.message_id:
                consumer.acknowledge_cumulative(position_from_wire(message_id), message_id.ack_set)
        else:
            whole: list[Position] = []
            for message_id in ack.message_id:
                position = position_from_wire(message_id)
                if message_id.ack_set:
                    consumer.acknowledge(position, ack_set=message_id.ack_set)
                else:
                    whole.append(position)
            if whole:
                consumer.acknowledge(*whole)
    except PulsarError as error:
        return error
    return None


def _opened(connection: CommandConnection, consumer_id: int) -> OpenConsumer:
    opened = connection.consumers.get(consumer_id)
    if opened is None:
        raise MetadataError("Consumer not found")  # as in real Pulsar, not ConsumerNotFound
    return opened


async def _open(connection: CommandConnection, request: pb.CommandSubscribe) -> None:
    topic = TopicName.parse(request.topic)
    context = connection.context
    live = await context.registry.open(topic, by=Requester.CLIENT, create=request.force_topic_creation)
    schema = requested_schema(request)
    auto_consume = schema is not None and schema.type is SchemaType.AUTO_CONSUME
    asked = _live_request(connection, request, auto_consume=auto_consume)
    live.failover_gate.check_consumer(asked)
    if schema is not None and not auto_consume:
        await context.schemas.admit_consumer(topic, schema, topic_active=_is_active(live, context.replicator_prefix))
    understood = connection.protocol.peer_flags.supports_broker_entry_metadata
    exposed = understood and connection.limits.broker_entry_metadata_exposed
    bare = live.broker_entry_metadata_possible and not exposed
    sink = BinaryConsumerSink(connection, request, topic.partition_index, bare=bare)
    consumer = await live.subscribe(asked, sink)
    sink.consumer = consumer
    if connection.lost:
        consumer.close()
        return
    connection.consumers[request.consumer_id] = OpenConsumer(consumer, live, sink)
    connection.output.send(commands.success(request.request_id))
    sink.subscribed(request.consumer_id)


def _is_active(live: AnyTopic, replicator_prefix: str) -> bool:
    """Return True if the topic holds messages, or has clients that define their schema.

    Replicators and consumers with AUTO_CONSUME do not define it.
    """
    stats = live.stats()
    if stats.get("msgInCounter", 0) or stats.get("storageSize", 0):
        return True
    if any(not publisher["producerName"].startswith(replicator_prefix) for publisher in stats["publishers"]):
        return True
    return live.clients.has_consumers_without_auto_consume


def _live_request(
    connection: CommandConnection, request: pb.CommandSubscribe, *, auto_consume: bool
) -> SubscribeRequest:
    start = message_id_from_wire(request.start_message_id) if request.HasField("start_message_id") else None
    return SubscribeRequest(
        consumer_id=request.consumer_id,
        subscription=request.subscription,
        sub_type=SubType(request.subType),
        consumer_name=request.consumer_name,
        priority_level=request.priority_level,
        durable=request.durable,
        start_message_id=start,
        start_rollback_seconds=request.start_message_rollback_duration_sec,
        initial_position=InitialPosition(request.initialPosition),
        read_compacted=request.read_compacted,
        replicate_state=request.replicate_subscription_state,
        properties={pair.key: pair.value for pair in request.subscription_properties},
        metadata={pair.key: pair.value for pair in request.metadata},
        key_sharing=_key_sharing(request.keySharedMeta) if request.HasField("keySharedMeta") else KeySharing(),
        epoch=request.consumer_epoch if request.HasField("consumer_epoch") else None,
        address=connection.address,
        client_version=connection.protocol.connect.client_version,
        auto_consume=auto_consume,
    )


def _key_sharing(meta: pb.KeySharedMeta) -> KeySharing:
    if meta.keySharedMode != pb.STICKY:
        return KeySharing((), meta.allowOutOfOrderDelivery)
    ranges = tuple(KeyRange(item.start, item.end) for item in meta.hashRanges)
    if not ranges:
        raise ConsumerAssignError("Ranges for KeyShared policy must not be empty.")
    return KeySharing(ranges, meta.allowOutOfOrderDelivery)
