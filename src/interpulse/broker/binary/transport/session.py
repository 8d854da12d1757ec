"""The identity of one connection's client, while authentication is on.

CONNECT brings the credentials. `CredentialWatch` watches them while the connection is open: the client's own, or with
``authenticateOriginalAuthData`` those that a proxy forwards. A client whose proxy forwards none cannot renew them, so
its connection ends with the credentials of the proxy.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from interpulse.authentication.authentication import BadCredentials, Identity, PeerCertificate
from interpulse.authentication.credential_watch import CredentialWatch
from interpulse.broker.access.setup import Access
from interpulse.broker.binary.transport.sinks import SinkConnection
from interpulse.model.errors import AuthorizationError, PulsarError, TenantNotFound
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.permissions import NamespaceOperation, Principal, TopicOperation
from interpulse.wire import pulsar_api_pb2 as pb

_logger = logging.getLogger(__name__)


class SessionConnection(SinkConnection, Protocol):
    """The interface of the connection for its session."""

    certificate: PeerCertificate | None
    session: Session | None

    @property
    def accepts_auth_challenge(self) -> bool: ...
    def challenge(self, auth_method: str) -> None: ...
    def drop(self, reason: str) -> None: ...
    def close_with_error(self, error: PulsarError, reason: str) -> None: ...
    def accept(self) -> None: ...
    def refuse(self, error: PulsarError, reason: str) -> None: ...


class Session:
    """One accepted client."""

    def __init__(
        self,
        connection: SessionConnection,
        access: Access,
        method: str,
        identity: Identity,
        principal: Principal,
        *,
        certificate: PeerCertificate | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """``identity`` was proven by ``method``: the client's, or that of the client behind a proxy.

        ``now`` returns seconds since 1970, the unit of expiry times.
        """
        self.principal = principal
        self.authorization = access.authorization
        self.rechecks = 0
        """The number of permission changes since this client was accepted."""
        self._connection = connection
        self._credentials = CredentialWatch(
            connection,
            access.authentication,
            method,
            identity,
            check_seconds=access.refresh_check_seconds,
            certificate=certificate,
            now=now,
        )

    @property
    def is_replicator(self) -> bool:
        """True if the client may act as a replicator. Without authorization its producer name alone decides."""
        return self.authorization is None or self.authorization.is_replicator(self.principal)

    async def renew(self, response: pb.AuthData) -> None:
        """Take the answer to a challenge, or end the connection: it is bad, or belongs to another role."""
        try:
            await self._credentials.renew(response.auth_method_name, response.auth_data)
        except BadCredentials as error:
            if not self._connection.lost:
                self._connection.close_with_error(error, error.detail)

    async def recheck(self, namespace: NamespaceName | None) -> None:
        """Close what the client may no longer have open after permissions of a namespace changed; None: of any."""
        self.rechecks += 1
        connection = self._connection
        for opened in list(connection.producers.values()):
            if not await self._may(TopicOperation.PRODUCE, opened.topic.name, None, namespace):
                opened.producer.close_by_broker()
        for reading in list(connection.consumers.values()):
            subscription = reading.consumer.subscription_name
            if not await self._may(TopicOperation.CONSUME, reading.topic.name, subscription, namespace):
                reading.consumer.close_by_broker()
        for watcher_id, watcher in list(connection.topic_watchers.items()):
            if self.authorization is None or namespace not in (None, watcher.namespace):
                continue
            check = self.authorization.check_namespace(self.principal, NamespaceOperation.GET_TOPICS, watcher.namespace)
            if not await _passes(check) and connection.topic_watchers.get(watcher_id) is watcher:
                del connection.topic_watchers[watcher_id]
                watcher.close()  # there is no command for this; the client is refused when it requests the list again

    async def _may(
        self, operation: TopicOperation, topic: TopicName, subscription: str | None, changed: NamespaceName | None
    ) -> bool:
        """Return True unless the client lost its permission when those of the namespace ``changed``; None: any."""
        if self.authorization is None or changed not in (None, topic.namespace_name):
            return True
        return await _passes(self.authorization.check_topic(self.principal, operation, topic, subscription))

    def close(self) -> None:
        self._credentials.close()


async def _passes(check: Awaitable[None]) -> bool:
    try:
        await check
    except (AuthorizationError, TenantNotFound):
        return False
    return True


async def admit(connection: SessionConnection, access: Access, connect: pb.CommandConnect) -> None:
    """Decide on CONNECT: accept the client with its identity, or refuse it."""
    try:
        session = await _session(connection, access, connect)
    except PulsarError as error:
        detail = error.detail if isinstance(error, BadCredentials) else str(error)
        refusal = error if isinstance(error, BadCredentials) else AuthorizationError("Invalid roles.")
        if not connection.lost:
            connection.refuse(refusal, detail)
        return
    if not connection.lost:
        connection.session = session
        connection.accept()


async def _session(connection: SessionConnection, access: Access, connect: pb.CommandConnect) -> Session:
    authentication, method, shown = access.authentication, connect.auth_method_name or "none", connection.certificate
    identity = await authentication.authenticate(method, connect.auth_data, certificate=shown)
    original = connect.original_principal or None
    watched = identity
    if original is not None and access.original_authenticated:
        method, shown = connect.original_auth_method, None
        watched = await authentication.authenticate(method, connect.original_auth_data.encode())
        original = watched.role
    elif original is not None:
        watched = replace(identity, renewable=False)
    principal = access.principal(identity.role, original)
    return Session(connection, access, method, watched, principal, certificate=shown)
