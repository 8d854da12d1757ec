"""Lookups of clients, put to brokers. Failures keep the code and the text of the broker."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from interpulse.client.config import BrokerAddress
from interpulse.client.transport.connection import Connection
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import (
    MetadataError,
    NotConnected,
    OperationTimeout,
    PulsarError,
    ServiceNotReady,
    UnknownError,
    UnsupportedVersion,
)
from interpulse.proxy.brokers import Brokers, endpoint_of
from interpulse.proxy.dialer import TargetRules
from interpulse.wire import pulsar_api_pb2 as pb

_logger = logging.getLogger(__name__)

REDIRECTS_MAX: Final = 10
UNREACHABLE: Final = (NotConnected, OperationTimeout)
"""Failures on the way to a broker. Clients get ServiceNotReady, so that they ask again."""
_SPEAKING_FOR_OTHERS: Final = (pb.CommandLookupTopic, pb.CommandPartitionedTopicMetadata, pb.CommandBatchLookupTopic)
"""Requests with an original client, which clients may not set."""
_CONNECT: Final = pb.CommandLookupTopicResponse.Connect


class Questions:
    """The lookups of one client, over the connections of its pool."""

    def __init__(self, brokers: Brokers, rules: TargetRules, pool: ConnectionPool, *, tls: bool) -> None:
        """``rules`` limit the brokers that answers may name. ``tls``: brokers are reached inside TLS."""
        self.pool = pool
        self._brokers = brokers
        self._rules = rules
        self._tls = tls
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()

    async def connection(self) -> Connection:
        """Return a connection to one broker, or to another one if that is down.

        Raise ServiceNotReady, or the error with which a broker refuses the credentials.
        """
        async with self._connecting:
            if self._connection is None or not self._connection.is_open:
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> Connection:
        failure: PulsarError | None = None
        for address in self._brokers.to_ask():
            try:
                return await self.pool.get(address)
            except UNREACHABLE as error:
                _logger.warning("broker not reached address=%s reason=%s", address, error)
                failure = error
        raise ServiceNotReady(str(failure)) from failure

    def named(self, url: str, url_tls: str) -> BrokerAddress:
        """Return the address that a broker names. Raise MetadataError if it names none, or one that is not allowed."""
        url = url_tls if self._tls else url
        try:
            address = BrokerAddress.parse(url)
        except ValueError as error:
            kind = "encrypted address" if self._tls else "address without TLS"
            raise MetadataError(f"a broker answered a lookup with {url!r}, which is no {kind}") from error
        refusal = self._rules.refusal(address.host, address.port)
        if refusal is not None:
            raise MetadataError(f"a broker names {address} in a lookup: {refusal}")
        return address

    def note_owner(self, owner: BrokerAddress, asked: BrokerAddress | None) -> None:
        """Accept the owner of a topic.

        One of our brokers names it (``asked`` None), or it is a broker that a redirect led to (``asked``) and that
        names itself.

        """
        if asked is None or endpoint_of(asked) == endpoint_of(owner):
            self._brokers.note_named(owner)

    async def find(self, lookup: pb.CommandLookupTopic, connection: Connection | None = None) -> BrokerAddress:
        """Return the broker of a topic, following redirects. Raise PulsarError.

        ``connection`` leads to a broker that a redirect named.
        """
        asked = connection.address if connection is not None else None
        connection = connection or await self.connection()
        question = pb.CommandLookupTopic()
        question.CopyFrom(lookup)
        for _ in range(REDIRECTS_MAX + 1):
            answer = (await ask(connection, question)).lookupTopicResponse
            address = self.named(answer.brokerServiceUrl, answer.brokerServiceUrlTls)
            if answer.response == _CONNECT:
                self.note_owner(address, asked)
                return address
            question.authoritative = answer.authoritative
            connection, asked = await self.pool.get(address), address
        raise ServiceNotReady(f"lookup of {lookup.topic}: more than {REDIRECTS_MAX} redirects")

    async def partitions(self, question: pb.CommandPartitionedTopicMetadata) -> int:
        """Return the partition count of a topic. Raise TopicNotFound, UnsupportedVersion and others."""
        connection = await self.connection()
        creates = question.metadata_auto_creation_enabled
        if not creates and not connection.peer_flags.supports_get_partitioned_metadata_without_auto_creation:
            raise UnsupportedVersion(
                f"{connection.address} is older than PIP-344: asking for partitions of {question.topic} could create it"
            )
        answer = await ask(connection, question)
        if not answer.HasField("partitionMetadataResponse"):
            raise UnknownError(f"{connection.address} answered a question for partitions with type {answer.type}")
        return answer.partitionMetadataResponse.partitions


Question = (
    pb.CommandLookupTopic
    | pb.CommandPartitionedTopicMetadata
    | pb.CommandGetTopicsOfNamespace
    | pb.CommandGetSchema
    | pb.CommandBatchLookupTopic
)


async def ask(connection: Connection, question: Question) -> pb.BaseCommand:
    """Send a request under an id of this connection. Raise the error that the broker answers."""
    asked = type(question)()
    asked.CopyFrom(question)  # type: ignore[arg-type]  # it is of its own type
    if isinstance(asked, _SPEAKING_FOR_OTHERS):
        asked.ClearField("original_principal")
        asked.ClearField("original_auth_data")
        asked.ClearField("original_auth_method")
    return await connection.request(asked)
