"""Frames of commands: those of `interpulse.wire.commands`, and the requests that the client sends by their contents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from struct import pack
from typing import Any

from interpulse.model.ids import MessageId, Position
from interpulse.model.schemas import SchemaInfo
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.answers import failed_answer
from interpulse.wire.commands import PING as PING
from interpulse.wire.commands import PONG as PONG
from interpulse.wire.commands import AnswerTemplate as AnswerTemplate
from interpulse.wire.commands import MessageHeadEncoder as MessageHeadEncoder
from interpulse.wire.commands import OriginalClient as OriginalClient
from interpulse.wire.commands import ack as ack
from interpulse.wire.commands import ack_one as ack_one
from interpulse.wire.commands import ack_response as ack_response
from interpulse.wire.commands import batch_lookup_response as batch_lookup_response
from interpulse.wire.commands import encode as encode
from interpulse.wire.commands import error as error
from interpulse.wire.commands import error_of as error_of
from interpulse.wire.commands import flow as flow
from interpulse.wire.commands import get_schema_response as get_schema_response
from interpulse.wire.commands import lookup_answer as lookup_answer
from interpulse.wire.commands import message_head as message_head
from interpulse.wire.commands import pairs as pairs
from interpulse.wire.commands import partitioned_metadata_answer as partitioned_metadata_answer
from interpulse.wire.commands import send_error as send_error
from interpulse.wire.commands import send_head as send_head
from interpulse.wire.commands import send_receipt as send_receipt
from interpulse.wire.commands import success as success
from interpulse.wire.ids import message_id_to_wire, unsigned
from interpulse.wire.schemas import schema_to_wire


def connect(
    *,
    client_version: str,
    protocol_version: int,
    feature_flags: pb.FeatureFlags,
    auth_method: str = "none",
    auth_data: bytes = b"",
    proxy_to_broker_url: str | None = None,
    original: OriginalClient | None = None,
) -> bytes:
    """Greet a broker. ``proxy_to_broker_url`` is host:port of the broker behind a proxy.

    ``original`` is set by a proxy that speaks for one of its clients.
    """
    greeting = pb.CommandConnect(
        client_version=client_version,
        protocol_version=protocol_version,
        auth_method_name=auth_method,
        auth_data=auth_data or None,
        feature_flags=feature_flags,
        proxy_to_broker_url=proxy_to_broker_url,
    )
    if original is not None:
        original.write(greeting)
    return encode(greeting)


def connected(
    *, server_version: str, protocol_version: int, message_bytes_max: int | None, feature_flags: pb.FeatureFlags
) -> bytes:
    """Accept a greeting. ``message_bytes_max`` None: the sender does not know it."""
    return encode(
        pb.CommandConnected(
            server_version=server_version,
            protocol_version=protocol_version,
            max_message_size=message_bytes_max,
            feature_flags=feature_flags,
        )
    )


def get_topics_of_namespace_response(
    request_id: int, topics: Iterable[str], *, topics_hash: str, filtered: bool = False, changed: bool = True
) -> bytes:
    """Answer with the topics of a namespace. ``changed=False``, without topics: the hash of the request still holds."""
    return encode(
        pb.CommandGetTopicsOfNamespaceResponse(
            request_id=request_id, topics=topics, filtered=filtered, topics_hash=topics_hash, changed=changed
        )
    )


def watch_topic_list_success(request_id: int, watcher_id: int, topics: Iterable[str], *, topics_hash: str) -> bytes:
    return encode(
        pb.CommandWatchTopicListSuccess(
            request_id=request_id, watcher_id=watcher_id, topic=topics, topics_hash=topics_hash
        )
    )


def watch_topic_update(watcher_id: int, *, new: Iterable[str], deleted: Iterable[str], topics_hash: str) -> bytes:
    return encode(
        pb.CommandWatchTopicUpdate(
            watcher_id=watcher_id, new_topics=new, deleted_topics=deleted, topics_hash=topics_hash
        )
    )


def get_or_create_schema_response(request_id: int, version: bytes) -> bytes:
    return encode(pb.CommandGetOrCreateSchemaResponse(request_id=request_id, schema_version=version))


def producer_success(
    request_id: int,
    *,
    name: str,
    last_sequence_id: int = -1,
    schema_version: bytes = b"",
    topic_epoch: int | None = None,
    ready: bool = True,
) -> bytes:
    """Confirm a producer. ``ready=False``: it waits for exclusive access, and a second answer follows."""
    return encode(
        pb.CommandProducerSuccess(
            request_id=request_id,
            producer_name=name,
            last_sequence_id=last_sequence_id,
            schema_version=schema_version,
            topic_epoch=topic_epoch,
            producer_ready=ready,
        )
    )


def close_producer(
    producer_id: int, request_id: int = -1, *, broker_url: str | None = None, broker_url_tls: str | None = None
) -> bytes:
    """Close a producer. From a broker, without request id, the client reopens it, at the given address or by lookup."""
    return encode(
        pb.CommandCloseProducer(
            producer_id=producer_id,
            request_id=unsigned(request_id),
            assignedBrokerServiceUrl=broker_url,
            assignedBrokerServiceUrlTls=broker_url_tls,
        )
    )


def close_consumer(
    consumer_id: int, request_id: int = -1, *, broker_url: str | None = None, broker_url_tls: str | None = None
) -> bytes:
    """Close a consumer. From a broker, without request id, the client subscribes again, there or by lookup."""
    return encode(
        pb.CommandCloseConsumer(
            consumer_id=consumer_id,
            request_id=unsigned(request_id),
            assignedBrokerServiceUrl=broker_url,
            assignedBrokerServiceUrlTls=broker_url_tls,
        )
    )


def get_last_message_id_response(request_id: int, last: MessageId, mark_delete: Position) -> bytes:
    """Answer with the last id, -1:-1 twice for an empty topic. Clients rely on the second position."""
    return encode(
        pb.CommandGetLastMessageIdResponse(
            request_id=request_id,
            last_message_id=message_id_to_wire(last),
            consumer_mark_delete_position=message_id_to_wire(mark_delete),
        )
    )


def active_consumer_change(consumer_id: int, *, active: bool) -> bytes:
    return encode(pb.CommandActiveConsumerChange(consumer_id=consumer_id, is_active=active))


def reached_end_of_topic(consumer_id: int) -> bytes:
    """Report the end of a terminated topic. Java clients only: C++ and Go clients close the connection on it."""
    return encode(pb.CommandReachedEndOfTopic(consumer_id=consumer_id))


def auth_response(*, client_version: str, protocol_version: int, auth_method: str, auth_data: bytes) -> bytes:
    response = pb.AuthData(auth_method_name=auth_method, auth_data=auth_data)
    return encode(
        pb.CommandAuthResponse(client_version=client_version, response=response, protocol_version=protocol_version)
    )


def partitioned_metadata(request_id: int, topic: str, *, create: bool = True) -> bytes:
    """Ask for the partition count.

    Send ``create=False`` only to brokers that announced the PIP-344 flag; older ones would create the topic.
    """
    return encode(
        pb.CommandPartitionedTopicMetadata(
            topic=topic, request_id=request_id, metadata_auto_creation_enabled=None if create else False
        )
    )


def partitioned_metadata_response(request_id: int, partitions: int) -> bytes:
    return commands.partitioned_metadata_answer(partitions).frame(request_id)


def lookup(
    request_id: int,
    topic: str,
    *,
    authoritative: bool = False,
    listener_name: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> bytes:
    return encode(
        pb.CommandLookupTopic(
            topic=topic,
            request_id=request_id,
            authoritative=authoritative,
            advertised_listener_name=listener_name,
            properties=pairs(properties or {}),
        )
    )


def lookup_response(request_id: int, **fields: Any) -> bytes:
    return commands.lookup_answer(**fields).frame(request_id)


def batch_lookup(
    request_id: int,
    topics: Iterable[str],
    *,
    authoritative: bool = False,
    listener_name: str | None = None,
    create_if_missing: bool = True,
    expand_partitions: bool = False,
) -> bytes:
    """Look up many topics (PIP-35).

    Send this only to brokers that announced supports_batch_lookup; others drop the connection.
    """
    return encode(
        pb.CommandBatchLookupTopic(
            topics=topics,
            request_id=request_id,
            authoritative=authoritative,
            advertised_listener_name=listener_name,
            create_if_missing=create_if_missing,
            expand_partitions=expand_partitions,
        )
    )


def get_topics_of_namespace(
    request_id: int,
    namespace: str,
    *,
    mode: pb.CommandGetTopicsOfNamespace.Mode.ValueType = pb.CommandGetTopicsOfNamespace.ALL,
    topics_pattern: str | None = None,
    topics_hash: str | None = None,
    properties: Mapping[str, str] = {},
) -> bytes:
    return encode(
        pb.CommandGetTopicsOfNamespace(
            request_id=request_id,
            namespace=namespace,
            mode=mode,
            topics_pattern=topics_pattern,
            topics_hash=topics_hash,
            properties=pairs(properties),
        )
    )


def watch_topic_list(
    request_id: int, watcher_id: int, namespace: str, topics_pattern: str, *, topics_hash: str | None = None
) -> bytes:
    """Watch topics. Send this only to brokers that announced supports_topic_watchers."""
    return encode(
        pb.CommandWatchTopicList(
            request_id=request_id,
            watcher_id=watcher_id,
            namespace=namespace,
            topics_pattern=topics_pattern,
            topics_hash=topics_hash,
        )
    )


def watch_topic_list_close(request_id: int, watcher_id: int) -> bytes:
    return encode(pb.CommandWatchTopicListClose(request_id=request_id, watcher_id=watcher_id))


def get_schema(request_id: int, topic: str, version: bytes | None = None) -> bytes:
    """Ask for a schema. ``version`` None is the latest."""
    return encode(pb.CommandGetSchema(request_id=request_id, topic=topic, schema_version=version))


def get_or_create_schema(request_id: int, topic: str, schema: SchemaInfo, *, producer_name: str | None = None) -> bytes:
    return encode(
        pb.CommandGetOrCreateSchema(
            request_id=request_id, topic=topic, schema=schema_to_wire(schema), producerName=producer_name
        )
    )


def producer(
    request_id: int,
    producer_id: int,
    topic: str,
    *,
    name: str | None = None,
    name_given_by_user: bool = True,
    epoch: int = 0,
    schema: SchemaInfo | None = None,
    access_mode: pb.ProducerAccessMode.ValueType = pb.Shared,
    topic_epoch: int | None = None,
    encrypted: bool = False,
    properties: Mapping[str, str] | None = None,
    initial_subscription_name: str | None = None,
) -> bytes:
    """Open a producer. ``epoch`` grows by one with every attempt of the same producer to reconnect."""
    return encode(
        pb.CommandProducer(
            topic=topic,
            producer_id=producer_id,
            request_id=request_id,
            producer_name=name,
            user_provided_producer_name=name_given_by_user,
            epoch=epoch,
            schema=schema_to_wire(schema) if schema is not None else None,
            producer_access_mode=access_mode,
            topic_epoch=topic_epoch,
            encrypted=encrypted,
            metadata=pairs(properties or {}),
            initial_subscription_name=initial_subscription_name,
        )
    )


def send(
    producer_id: int,
    sequence_id: int,
    entry: bytes | memoryview,
    *,
    num_messages: int = 1,
    highest_sequence_id: int = 0,
    is_chunk: bool = False,
    marker: bool = False,
) -> bytes:
    """Send an entry built by frames.build_entry."""
    head = send_head(
        producer_id,
        sequence_id,
        len(entry),
        num_messages=num_messages,
        highest_sequence_id=highest_sequence_id,
        is_chunk=is_chunk,
        marker=marker,
    )
    return b"".join((head, entry))


def subscribe(
    request_id: int,
    consumer_id: int,
    topic: str,
    subscription: str,
    *,
    kind: pb.CommandSubscribe.SubType.ValueType = pb.CommandSubscribe.Exclusive,
    name: str | None = None,
    durable: bool = True,
    start: Position | MessageId | None = None,
    initial_position: pb.CommandSubscribe.InitialPosition.ValueType = pb.CommandSubscribe.Latest,
    force_topic_creation: bool = True,
    read_compacted: bool = False,
    priority_level: int = 0,
    schema: SchemaInfo | None = None,
    key_shared: pb.KeySharedMeta | None = None,
    properties: Mapping[str, str] | None = None,
    subscription_properties: Mapping[str, str] | None = None,
    replicate_state: bool = False,
    consumer_epoch: int | None = None,
) -> bytes:
    """Subscribe. ``start`` is for ``durable=False``: the broker begins at that entry."""
    return encode(
        pb.CommandSubscribe(
            topic=topic,
            subscription=subscription,
            subType=kind,
            consumer_id=consumer_id,
            request_id=request_id,
            consumer_name=name,
            durable=durable,
            start_message_id=message_id_to_wire(start) if start is not None else None,
            initialPosition=initial_position,
            force_topic_creation=force_topic_creation,
            read_compacted=read_compacted or None,
            priority_level=priority_level or None,
            schema=schema_to_wire(schema) if schema is not None else None,
            keySharedMeta=key_shared,
            metadata=pairs(properties or {}),
            subscription_properties=pairs(subscription_properties or {}),
            replicate_subscription_state=replicate_state or None,
            consumer_epoch=consumer_epoch,
        )
    )


def message(
    consumer_id: int,
    position: Position,
    entry: bytes | memoryview,
    *,
    partition: int = -1,
    redelivery_count: int = 0,
    ack_set: Sequence[int] = (),
    consumer_epoch: int | None = None,
) -> bytes:
    """Deliver a stored entry."""
    head = message_head(
        consumer_id,
        position.ledger,
        position.entry,
        len(entry),
        partition=partition,
        redelivery_count=redelivery_count,
        ack_set=ack_set,
        consumer_epoch=consumer_epoch,
    )
    return b"".join((head, entry))


def redeliver_unacknowledged(
    consumer_id: int, message_ids: Iterable[pb.MessageIdData] = (), *, consumer_epoch: int | None = None
) -> bytes:
    """Ask for redelivery. Without ids it covers everything that this consumer has not acknowledged."""
    return encode(
        pb.CommandRedeliverUnacknowledgedMessages(
            consumer_id=consumer_id, message_ids=message_ids, consumer_epoch=consumer_epoch
        )
    )


def seek(request_id: int, consumer_id: int, target: Position | MessageId | int) -> bytes:
    """Seek to a position or, for an int, to a publish time in ms since the epoch."""
    if isinstance(target, int):
        return encode(pb.CommandSeek(consumer_id=consumer_id, request_id=request_id, message_publish_time=target))
    position = message_id_to_wire(target)
    return encode(pb.CommandSeek(consumer_id=consumer_id, request_id=request_id, message_id=position))


def unsubscribe(request_id: int, consumer_id: int, *, force: bool = False) -> bytes:
    return encode(pb.CommandUnsubscribe(consumer_id=consumer_id, request_id=request_id, force=force))


def get_last_message_id(request_id: int, consumer_id: int) -> bytes:
    return encode(pb.CommandGetLastMessageId(consumer_id=consumer_id, request_id=request_id))


def consumer_stats(request_id: int, consumer_id: int) -> bytes:
    return encode(pb.CommandConsumerStats(consumer_id=consumer_id, request_id=request_id))


def _failed(request_type: int) -> Callable[[int, int, str], bytes]:
    return partial(failed_answer, request_type)


partitioned_metadata_error = _failed(pb.BaseCommand.PARTITIONED_METADATA)
lookup_error = _failed(pb.BaseCommand.LOOKUP)
batch_lookup_error = _failed(pb.BaseCommand.BATCH_LOOKUP)
get_schema_error = _failed(pb.BaseCommand.GET_SCHEMA)


def encode_with_entry(command: pb.BaseCommand, entry: bytes | memoryview) -> bytes:
    """Encode a frame that ends with ``entry``, unchanged."""
    raw = command.SerializePartialToString()
    return b"".join((pack(">II", len(raw) + 4 + len(entry), len(raw)), raw, entry))
