"""The permission that each command requires.

It is checked before the handler runs and before the subject is looked up.

Every command with a handler has an entry in `CHECKS`; a command without one is for super users only. A producer or
consumer is checked when it opens and when permissions change, not with each of its commands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

from interpulse.broker.access.authorization import Authorization
from interpulse.broker.binary.transport.command_connection import CommandConnection
from interpulse.broker.binary.transport.session import Session
from interpulse.model.errors import AuthorizationError, PulsarError, TenantNotFound, TopicNotFound
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.permissions import NamespaceOperation, Principal, TopicOperation
from interpulse.rules.permissions import SubscriptionPrefixMissing
from interpulse.wire import pulsar_api_pb2 as pb

Check = Callable[[Authorization, Principal, Any], Awaitable[None]]


async def handle_if_authorized(
    connection: CommandConnection,
    session: Session,
    kind: int,
    request: Any,
    handler: Callable[[CommandConnection, Any], Coroutine[Any, Any, None]],
) -> None:
    """Handle a request if its sender has the permission. Raise AuthorizationError otherwise."""
    if session.authorization is None:
        await handler(connection, request)
        return
    before = session.rechecks
    await CHECKS.get(kind, _super_users_only)(session.authorization, session.principal, request)
    await handler(connection, request)
    if session.rechecks != before and kind in _OPENING:  # the recheck missed what was being opened
        await session.recheck(TopicName.parse(request.topic).namespace_name)


async def _super_users_only(authorization: Authorization, principal: Principal, request: Any) -> None:
    authorization.check_super_user(principal)


async def _nothing(authorization: Authorization, principal: Principal, request: Any) -> None:
    """Check nothing: the subject was checked earlier, or is checked topic by topic."""


def _on_topic(operation: TopicOperation, refusal: str, without_tenant: Callable[[TopicName], PulsarError]) -> Check:
    async def check(authorization: Authorization, principal: Principal, request: Any) -> None:
        topic = TopicName.parse(request.topic)
        try:
            await authorization.check_topic(principal, operation, topic)
        except AuthorizationError:
            raise AuthorizationError(refusal) from None
        except TenantNotFound:
            raise without_tenant(topic) from None

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


_TYPES: Final = pb.BaseCommand
_OPENING: Final = (_TYPES.PRODUCER, _TYPES.SUBSCRIBE)

CHECKS: Final[Mapping[int, Check]] = {
    _TYPES.PARTITIONED_METADATA: _on_topic(
        TopicOperation.LOOKUP,
        "Client is not authorized to Get Partition Metadata",
        lambda topic: TopicNotFound(f"Tenant or namespace or topic does not exist: {topic.namespace_name}"),
    ),
    _TYPES.LOOKUP: _on_topic(
        TopicOperation.LOOKUP, "Client is not authorized to Lookup", lambda topic: _failed("lookup")
    ),
    _TYPES.BATCH_LOOKUP: _nothing,
    _TYPES.GET_TOPICS_OF_NAMESPACE: _on_namespace(NamespaceOperation.GET_TOPICS, "GetTopicsOfNamespace"),
    _TYPES.WATCH_TOPIC_LIST: _on_namespace(NamespaceOperation.GET_TOPICS, "watchTopicList"),
    _TYPES.WATCH_TOPIC_LIST_CLOSE: _nothing,
    _TYPES.PRODUCER: _to_produce,
    _TYPES.CLOSE_PRODUCER: _nothing,
    _TYPES.SUBSCRIBE: _to_subscribe,
    _TYPES.CLOSE_CONSUMER: _nothing,
    _TYPES.UNSUBSCRIBE: _nothing,
    _TYPES.SEEK: _nothing,
    _TYPES.GET_LAST_MESSAGE_ID: _nothing,
    _TYPES.CONSUMER_STATS: _nothing,
    _TYPES.GET_SCHEMA: _on_topic(
        TopicOperation.GET_METADATA, "Client is not authorized to GetSchema", lambda topic: _failed("GetSchema")
    ),
    _TYPES.GET_OR_CREATE_SCHEMA: _on_topic(
        TopicOperation.PRODUCE,
        "Client is not authorized to GetOrCreateSchema",
        lambda topic: _failed("GetOrCreateSchema"),
    ),
}
