"""The table of commands and their handlers.

``INLINE`` handlers never wait, so they keep the order of the frames. Each of the ``AWAITING`` ones runs in a task,
started in the order of the frames, and is listed with the name of the field that holds its request. Runs of lookups
need no task if the answers are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from interpulse.broker.access.change_log import note_change
from interpulse.broker.binary import consumers, lookup, producers, schemas, topic_watchers, topics
from interpulse.broker.binary.authorization_filter import handle_if_authorized
from interpulse.broker.binary.transport import session
from interpulse.broker.binary.transport.command_connection import CommandConnection, Handlers
from interpulse.model.errors import NotAllowed, PulsarError, UnsupportedVersion
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import AckRun, FlowRun, Frame, LookupRun, PartitionsRun, Received, SendRun

Inline = Callable[[CommandConnection, Frame], None]
Awaiting = Callable[[CommandConnection, Any], Coroutine[Any, Any, None]]

_TYPES: Final = pb.BaseCommand


def on_connect(connection: CommandConnection, frame: Frame) -> None:
    """Accept the client, or check its credentials.

    While authentication is off, every client is accepted, also through a proxy and with an unknown method.
    """
    if connection.context.access is None:
        connection.accept()
    else:
        connection.settle(session.admit(connection, connection.context.access, frame.command.connect))


def on_auth_response(connection: CommandConnection, frame: Frame) -> None:
    """Take new credentials. Does nothing while authentication is off."""
    if connection.session is not None:
        response = frame.command.authResponse.response
        connection.settle(session.renew(connection, connection.session, response))


def on_transaction(connection: CommandConnection, frame: Frame) -> None:
    connection.answer_failure(frame.command, NotAllowed("Transactions are not enabled."))


def on_unsupported(connection: CommandConnection, frame: Frame) -> None:
    name = _TYPES.Type.Name(frame.command.type)
    connection.answer_failure(frame.command, UnsupportedVersion(f"{name} is not supported by this broker"))


_TRANSACTIONS: Final = (
    _TYPES.NEW_TXN,
    _TYPES.ADD_PARTITION_TO_TXN,
    _TYPES.ADD_SUBSCRIPTION_TO_TXN,
    _TYPES.END_TXN,
    _TYPES.END_TXN_ON_PARTITION,
    _TYPES.END_TXN_ON_SUBSCRIPTION,
    _TYPES.TC_CLIENT_CONNECT_REQUEST,
)
# Commands that a client sends only to brokers that announce them; this one does not.
_UNSUPPORTED: Final = (
    _TYPES.SCALABLE_TOPIC_LOOKUP,
    _TYPES.SCALABLE_TOPIC_CLOSE,
    _TYPES.SCALABLE_TOPIC_SUBSCRIBE,
    _TYPES.WATCH_SCALABLE_TOPICS,
    _TYPES.WATCH_SCALABLE_TOPICS_CLOSE,
    _TYPES.WATCH_TC_ASSIGNMENTS,
    _TYPES.WATCH_TC_ASSIGNMENTS_CLOSE,
)

# Changes that the admin API offers too; the audit log records both.
_CHANGING: Final = frozenset({_TYPES.UNSUBSCRIBE, _TYPES.SEEK, _TYPES.GET_OR_CREATE_SCHEMA})

INLINE: Final[dict[int, Inline]] = {
    _TYPES.SEND: producers.on_send,
    _TYPES.ACK: consumers.on_ack,
    _TYPES.FLOW: consumers.on_flow,
    _TYPES.REDELIVER_UNACKNOWLEDGED_MESSAGES: consumers.on_redeliver,
    _TYPES.CONNECT: on_connect,
    _TYPES.AUTH_RESPONSE: on_auth_response,
    **dict.fromkeys(_TRANSACTIONS, on_transaction),
    **dict.fromkeys(_UNSUPPORTED, on_unsupported),
}

RUNS: Final[dict[type, Callable[[CommandConnection, Any], Sequence[Received]]]] = {
    SendRun: producers.on_sends,
    AckRun: consumers.on_acks,
    FlowRun: consumers.on_flows,
    PartitionsRun: topics.on_partitions_run,
    LookupRun: lookup.on_lookup_run,
}

AWAITING: Final[dict[int, tuple[str, Awaiting]]] = {
    _TYPES.PARTITIONED_METADATA: ("partitionMetadata", topics.on_partitioned_metadata),
    _TYPES.LOOKUP: ("lookupTopic", lookup.on_lookup),
    _TYPES.BATCH_LOOKUP: ("batchLookupTopic", lookup.on_batch_lookup),
    _TYPES.GET_TOPICS_OF_NAMESPACE: ("getTopicsOfNamespace", topics.on_get_topics_of_namespace),
    _TYPES.WATCH_TOPIC_LIST: ("watchTopicList", topic_watchers.on_watch_topic_list),
    _TYPES.WATCH_TOPIC_LIST_CLOSE: ("watchTopicListClose", topic_watchers.on_watch_topic_list_close),
    _TYPES.PRODUCER: ("producer", producers.on_producer),
    _TYPES.CLOSE_PRODUCER: ("close_producer", producers.on_close_producer),
    _TYPES.SUBSCRIBE: ("subscribe", consumers.on_subscribe),
    _TYPES.CLOSE_CONSUMER: ("close_consumer", consumers.on_close_consumer),
    _TYPES.UNSUBSCRIBE: ("unsubscribe", consumers.on_unsubscribe),
    _TYPES.SEEK: ("seek", consumers.on_seek),
    _TYPES.GET_LAST_MESSAGE_ID: ("getLastMessageId", consumers.on_get_last_message_id),
    _TYPES.CONSUMER_STATS: ("consumerStats", consumers.on_consumer_stats),
    _TYPES.GET_SCHEMA: ("getSchema", schemas.on_get_schema),
    _TYPES.GET_OR_CREATE_SCHEMA: ("getOrCreateSchema", schemas.on_get_or_create_schema),
}


def work_on(connection: CommandConnection, command: pb.BaseCommand) -> Coroutine[Any, Any, None]:
    """Return the work for a command; see `Handlers`. With authentication, the authorization filter runs first."""
    entry = AWAITING.get(command.type)
    if entry is None:
        raise RemoteProtocolError(f"{pb.BaseCommand.Type.Name(command.type)} is no command for a broker")
    field, handler = entry
    request = getattr(command, field)
    session = connection.session
    work = (
        handler(connection, request)
        if session is None
        else handle_if_authorized(connection, session, command.type, request, handler)
    )
    return _noted(connection, command, request, work) if command.type in _CHANGING else work


async def _noted(
    connection: CommandConnection, command: pb.BaseCommand, request: Any, work: Coroutine[Any, Any, None]
) -> None:
    """Run the work and write its outcome to the audit log."""
    name = pb.BaseCommand.Type.Name(command.type)
    subject = request.topic if command.type == _TYPES.GET_OR_CREATE_SCHEMA else _read(connection, request.consumer_id)
    code, reason = int(pb.UnknownError), "the broker failed, or the client went away"
    try:
        await work
        code, reason = 0, ""
    except PulsarError as error:
        code, reason = int(error.wire_code), str(error)
        raise
    finally:
        principal = None if connection.session is None else connection.session.principal
        note_change(principal, connection.address.lstrip("/"), name, subject, code, reason)


def _read(connection: CommandConnection, consumer_id: int) -> str:
    """Return the topic and the subscription of a consumer, "" for none."""
    opened = connection.consumers.get(consumer_id)
    return "" if opened is None else f"{opened.topic.name} {opened.consumer.subscription_name}"


HANDLERS: Final = Handlers(INLINE, RUNS, work_on)
