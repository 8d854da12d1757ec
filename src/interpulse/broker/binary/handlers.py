"""The table of commands, their handlers, and the permission that each requires.

``INLINE`` handlers never wait, so they keep the order of the frames. Each of the ``AWAITING`` ones runs in a task,
started in the order of the frames, and is listed with the name of the field that holds its request, and with the check
of its permission. Runs of lookups need no task if the answers are in memory.

A permission is checked before the handler runs and before the subject is looked up. A producer or consumer is checked
when it opens and when permissions change, not with each of its commands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final

from interpulse.broker.access.authorization import Authorization
from interpulse.broker.access.change_log import note_change
from interpulse.broker.binary import consumers, lookup, producers, schemas, topics
from interpulse.broker.binary.transport import session
from interpulse.broker.binary.transport.context import CommandConnection, Handlers
from interpulse.broker.binary.transport.session import Session
from interpulse.model.errors import (
    AuthorizationError,
    NotAllowed,
    PulsarError,
    TenantNotFound,
    TopicNotFound,
    UnsupportedVersion,
)
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.permissions import NamespaceOperation, Principal, TopicOperation
from interpulse.rules.permissions import SubscriptionPrefixMissing
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import AckRun, FlowRun, Frame, LookupRun, PartitionsRun, Received, SendRun

Inline = Callable[[CommandConnection, Frame], None]
Awaiting = Callable[[CommandConnection, Any], Coroutine[Any, Any, None]]
Check = Callable[[Authorization, Principal, Any], Awaitable[None]]

_TYPES: Final = pb.BaseCommand
_OPENING: Final = (_TYPES.PRODUCER, _TYPES.SUBSCRIBE)


async def handle_if_authorized(
    connection: CommandConnection, session: Session, kind: int, request: Any, handler: Awaiting, check: Check
) -> None:
    """Handle a request if its sender has the permission. Raise AuthorizationError otherwise."""
    if session.authorization is None:
        await handler(connection, request)
        return
    before = session.rechecks
    await check(session.authorization, session.principal, request)
    await handler(connection, request)
    if session.rechecks != before and kind in _OPENING:  # the recheck missed what was being opened
        await session.recheck(TopicName.parse(request.topic).namespace_name)


async def _nothing(authorization: Authorization, principal: Principal, request: Any) -> None:
    """Check nothing: the subject was checked earlier, or is checked topic by topic."""


def _on_topic(
    operation: TopicOperation, command: str, without_tenant: Callable[[TopicName], PulsarError] | None = None
) -> Check:
    async def check(authorization: Authorization, principal: Principal, request: Any) -> None:
        topic = TopicName.parse(request.topic)
        try:
            await authorization.check_topic(principal, operation, topic)
        except AuthorizationError:
            raise AuthorizationError(f"Client is not authorized to {command}") from None
        except TenantNotFound:
            raise (_failed(command) if without_tenant is None else without_tenant(topic)) from None

    check.__name__ = f"topic {operation}"
    return check


def _on_namespace(operation: NamespaceOperation, command: str) -> Check:
    async def check(authorization: Authorization, principal: Principal, request: Any) -> None:
        try:
            await authorization.check_namespace(principal, operation, NamespaceName.parse(request.namespace))
        except AuthorizationError:
            raise AuthorizationError(f"Client is not authorized to {command}") from None
        except TenantNotFound:
            raise _failed(command) from None

    check.__name__ = f"namespace {operation}"
    return check


def _failed(what: str) -> AuthorizationError:
    return AuthorizationError(f"Exception occurred while trying to authorize {what}")


async def _to_produce(authorization: Authorization, principal: Principal, request: pb.CommandProducer) -> None:
    """Check the permission to produce, and the permission to subscribe for an initial subscription."""
    topic = TopicName.parse(request.topic)
    try:
        await authorization.check_topic(principal, TopicOperation.PRODUCE, topic)
        if request.initial_subscription_name:
            await authorization.check_topic(
                principal, TopicOperation.SUBSCRIBE, topic, request.initial_subscription_name
            )
    except (AuthorizationError, TenantNotFound):
        raise AuthorizationError("Client is not authorized to Produce") from None


async def _to_subscribe(authorization: Authorization, principal: Principal, request: pb.CommandSubscribe) -> None:
    topic = TopicName.parse(request.topic)
    try:
        await authorization.check_topic(principal, TopicOperation.CONSUME, topic, request.subscription)
    except SubscriptionPrefixMissing:
        raise
    except (AuthorizationError, TenantNotFound):
        raise AuthorizationError("Client is not authorized to subscribe") from None


def on_connect(connection: CommandConnection, frame: Frame) -> None:
    """Accept the client, or check its credentials. Without authentication every client is accepted."""
    if connection.context.access is None:
        connection.accept()
    else:
        connection.settle(session.admit(connection, connection.context.access, frame.command.connect))


def on_auth_response(connection: CommandConnection, frame: Frame) -> None:
    """Take new credentials. Does nothing while authentication is off."""
    if connection.session is not None:
        connection.settle(connection.session.renew(frame.command.authResponse.response))


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

AWAITING: Final[dict[int, tuple[str, Awaiting, Check]]] = {
    _TYPES.PARTITIONED_METADATA: (
        "partitionMetadata",
        topics.on_partitioned_metadata,
        _on_topic(
            TopicOperation.LOOKUP,
            "Get Partition Metadata",
            lambda topic: TopicNotFound(f"Tenant or namespace or topic does not exist: {topic.namespace_name}"),
        ),
    ),
    _TYPES.LOOKUP: (
        "lookupTopic",
        lookup.on_lookup,
        _on_topic(TopicOperation.LOOKUP, "Lookup", lambda topic: _failed("lookup")),
    ),
    _TYPES.BATCH_LOOKUP: ("batchLookupTopic", lookup.on_batch_lookup, _nothing),
    _TYPES.GET_TOPICS_OF_NAMESPACE: (
        "getTopicsOfNamespace",
        topics.on_get_topics_of_namespace,
        _on_namespace(NamespaceOperation.GET_TOPICS, "GetTopicsOfNamespace"),
    ),
    _TYPES.WATCH_TOPIC_LIST: (
        "watchTopicList",
        topics.on_watch_topic_list,
        _on_namespace(NamespaceOperation.GET_TOPICS, "watchTopicList"),
    ),
    _TYPES.WATCH_TOPIC_LIST_CLOSE: ("watchTopicListClose", topics.on_watch_topic_list_close, _nothing),
    _TYPES.PRODUCER: ("producer", producers.on_producer, _to_produce),
    _TYPES.CLOSE_PRODUCER: ("close_producer", producers.on_close_producer, _nothing),
    _TYPES.SUBSCRIBE: ("subscribe", consumers.on_subscribe, _to_subscribe),
    _TYPES.CLOSE_CONSUMER: ("close_consumer", consumers.on_close_consumer, _nothing),
    _TYPES.UNSUBSCRIBE: ("unsubscribe", consumers.on_unsubscribe, _nothing),
    _TYPES.SEEK: ("seek", consumers.on_seek, _nothing),
    _TYPES.GET_LAST_MESSAGE_ID: ("getLastMessageId", consumers.on_get_last_message_id, _nothing),
    _TYPES.CONSUMER_STATS: ("consumerStats", consumers.on_consumer_stats, _nothing),
    _TYPES.GET_SCHEMA: ("getSchema", schemas.on_get_schema, _on_topic(TopicOperation.GET_METADATA, "GetSchema")),
    _TYPES.GET_OR_CREATE_SCHEMA: (
        "getOrCreateSchema",
        schemas.on_get_or_create_schema,
        _on_topic(TopicOperation.PRODUCE, "GetOrCreateSchema"),
    ),
}


def work_on(connection: CommandConnection, command: pb.BaseCommand) -> Coroutine[Any, Any, None]:
    """Return the work for a command; see `Handlers`. With authentication, the authorization filter runs first."""
    if command.type not in AWAITING:
        raise RemoteProtocolError(f"{pb.BaseCommand.Type.Name(command.type)} is no command for a broker")
    field, handler, check = AWAITING[command.type]
    request = getattr(command, field)
    session = connection.session
    work = (
        handler(connection, request)
        if session is None
        else handle_if_authorized(connection, session, command.type, request, handler, check)
    )
    return _noted(connection, command, request, work) if command.type in _CHANGING else work


async def _noted(
    connection: CommandConnection, command: pb.BaseCommand, request: Any, work: Coroutine[Any, Any, None]
) -> None:
    name = pb.BaseCommand.Type.Name(command.type)
    subject = ""
    if command.type == _TYPES.GET_OR_CREATE_SCHEMA:
        subject = request.topic
    elif (opened := connection.consumers.get(request.consumer_id)) is not None:
        subject = f"{opened.topic.name} {opened.consumer.subscription_name}"
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


HANDLERS: Final = Handlers(INLINE, RUNS, work_on)
