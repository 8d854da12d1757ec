"""Every failure a caller can meet, one class each.

``wire_code`` is Pulsar's ServerError number, ``http_status`` the REST status, and ``retriable`` is true if asking again
may succeed without any change. A class states those that differ from its parent's. Front ends translate with these
three; nothing else decides. `error_for_wire_code` and `error_for_http_status` are the way back, for clients.

All classes keep plain text in ``args``, so they travel between processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import ClassVar, Final

__all__ = [
    "AlreadyClosed", "AlreadyExists", "AuthenticationError", "AuthorizationError", "CertificateError",
    "ChecksumError", "ClusterNotFound", "Conflict", "ConsumerAssignError", "ConsumerBusy", "ConsumerNotFound",
    "CryptoError", "DataLoss", "ExpansionAboveMaximum", "Forbidden", "IncompatibleSchema", "Inconsistency",
    "InvalidRequest", "InvalidSchemaDefinition", "InvalidTopicName", "MessageOfAnotherCluster", "MetadataError",
    "NamespaceElsewhere", "NamespaceNotFound", "NoRoomLeft", "NotAllowed", "NotConnected", "NotEmpty", "NotFound",
    "NotImplementedYet", "NotSupported", "OperationNotAllowed", "OperationTimeout", "PartitionCountAboveMaximum",
    "PartitionedTopicNotFound", "PersistenceError", "PolicyNotFound", "PreconditionFailed", "ProducerBusy",
    "ProducerFenced", "PulsarError", "QuotaExceededError", "QuotaExceededException", "RemoteClusterUnavailable",
    "RequestTooLarge", "SchemaNotFound", "ServerError", "ServiceNotReady", "SubscriptionNotFound", "TenantNotFound",
    "TooManyRequests", "TopicInconsistent", "TopicLimitReached", "TopicMoved", "TopicNotFound", "TopicTerminated",
    "Unauthorized", "UnknownError", "UnknownListener", "Unprocessable", "UnsupportedVersion",
]  # fmt: skip


class ServerError(IntEnum):
    """The error numbers of Pulsar's binary protocol."""

    UnknownError = 0
    MetadataError = 1
    PersistenceError = 2
    AuthenticationError = 3
    AuthorizationError = 4
    ConsumerBusy = 5
    ServiceNotReady = 6
    ProducerBlockedQuotaExceededError = 7
    ProducerBlockedQuotaExceededException = 8
    ChecksumError = 9
    UnsupportedVersionError = 10
    TopicNotFound = 11
    SubscriptionNotFound = 12
    ConsumerNotFound = 13
    TooManyRequests = 14
    TopicTerminatedError = 15
    ProducerBusy = 16
    InvalidTopicName = 17
    IncompatibleSchema = 18
    ConsumerAssignError = 19
    TransactionCoordinatorNotFound = 20
    InvalidTxnStatus = 21
    NotAllowedError = 22
    TransactionConflict = 23
    TransactionNotFound = 24
    ProducerFenced = 25


class PulsarError(Exception):
    """Anything the broker, the client or a rule refuses. ``str()`` is the sentence for the user."""

    wire_code: ClassVar[ServerError] = ServerError.UnknownError
    http_status: ClassVar[int] = 500
    retriable: ClassVar[bool] = False

    def __init_subclass__(
        cls, wire: ServerError | None = None, http: int | None = None, retriable: bool | None = None
    ) -> None:
        cls.wire_code = cls.wire_code if wire is None else wire
        cls.http_status = cls.http_status if http is None else http
        cls.retriable = cls.retriable if retriable is None else retriable

    def __init__(self, message: str = "") -> None:
        super().__init__(message)


class UnknownError(PulsarError):
    """The peer failed without saying why."""


class MetadataError(PulsarError, wire=ServerError.MetadataError, retriable=True):
    """The metadata store could not answer, or holds an unusable record."""


class NamespaceElsewhere(MetadataError, http=412):
    """The namespace is on other clusters, and none of them is a peer to which clients could be sent."""


class PersistenceError(PulsarError, wire=ServerError.PersistenceError, retriable=True):
    """An entry could not be made durable or read; it is not acknowledged."""


class AuthenticationError(PulsarError, wire=ServerError.AuthenticationError, http=401):
    """The credentials were not accepted."""


class CertificateError(AuthenticationError):
    """The certificate of a client cannot be used, or is not accepted. The text names file and remedy."""


class AuthorizationError(PulsarError, wire=ServerError.AuthorizationError, http=403):
    """The role may not do this."""


class Unauthorized(AuthorizationError, http=401):
    """The role may not do this, with the HTTP status that Pulsar has for topics, tenants and clusters."""


class Forbidden(AuthorizationError):
    """Refused for every client, for example a cluster that is not registered."""


class ConsumerBusy(PulsarError, wire=ServerError.ConsumerBusy, http=409):
    """The subscription accepts no further consumer now."""


class ConsumerAssignError(PulsarError, wire=ServerError.ConsumerAssignError, http=409):
    """Key ranges of the consumer overlap with another's."""


class ConsumerNotFound(PulsarError, wire=ServerError.ConsumerNotFound, http=404):
    """The connection has no such consumer."""


class ServiceNotReady(PulsarError, wire=ServerError.ServiceNotReady, http=503, retriable=True):
    """The broker or the topic is starting, moving or closing; ask again."""


class TopicMoved(ServiceNotReady):
    """Another cluster serves the namespace. Clients that understand TOPIC_MIGRATED are redirected instead.

    The URLs are set where the broker raises it; an error from the wire has only a text.
    """

    def __init__(self, message: str = "", service_url: str = "", service_url_tls: str = "") -> None:
        super().__init__(message)
        self.service_url = service_url
        self.service_url_tls = service_url_tls


class UnknownListener(ServiceNotReady, http=500):
    """The broker has no listener of this name. HTTP lookup treats that as an error of the server."""


class TooManyRequests(PulsarError, wire=ServerError.TooManyRequests, http=503, retriable=True):
    """No permit is left for this kind of request."""


class ProducerBusy(PulsarError, wire=ServerError.ProducerBusy, http=409):
    """The producer name is taken, or the topic is held by an exclusive producer."""


class ProducerFenced(PulsarError, wire=ServerError.ProducerFenced, http=409):
    """A newer exclusive producer owns the topic."""


class QuotaExceededError(PulsarError, wire=ServerError.ProducerBlockedQuotaExceededError, http=412):
    """The backlog quota makes producers wait."""


class QuotaExceededException(PulsarError, wire=ServerError.ProducerBlockedQuotaExceededException, http=412):
    """The backlog quota refuses producers."""


class NoRoomLeft(QuotaExceededException, http=503):
    """The broker cannot store messages until its disk has room.

    For official clients it is a quota: only with this code do they fail pending messages immediately and reconnect by
    themselves.
    """


class ChecksumError(PulsarError, wire=ServerError.ChecksumError, http=400):
    """The bytes do not match their CRC32C."""


class UnsupportedVersion(PulsarError, wire=ServerError.UnsupportedVersionError, http=501):
    """The command belongs to a part of the protocol that is not offered here."""


class NotFound(PulsarError, wire=ServerError.TopicNotFound, http=404):
    """A named thing does not exist."""


class TopicNotFound(NotFound):
    """The topic does not exist and may not be created (PIP-344)."""


class PartitionedTopicNotFound(TopicNotFound):
    """No partition metadata has this name."""


class NamespaceNotFound(NotFound):
    """The namespace does not exist."""


class TenantNotFound(NotFound):
    """The tenant does not exist."""


class ClusterNotFound(NotFound):
    """The cluster is not registered."""


class SchemaNotFound(NotFound):
    """The topic has no schema, or not in this version."""


class PolicyNotFound(NotFound):
    """No policy is set under this name."""


class SubscriptionNotFound(NotFound, wire=ServerError.SubscriptionNotFound):
    """The topic has no such subscription."""


class Conflict(PulsarError, wire=ServerError.NotAllowedError, http=409):
    """An existing resource conflicts with the request."""


class AlreadyExists(Conflict):
    """The name is taken."""


class NotEmpty(Conflict):
    """The resource is not empty, and deletion was not forced."""


class NotAllowed(PulsarError, wire=ServerError.NotAllowedError, http=409):
    """The rules of the topic or the broker forbid it for good."""


class Inconsistency(StrEnum):
    """The three ways in which a topic and its partition metadata disagree (PIP-414)."""

    METADATA_MISSING = "metadata_missing"
    PARTITION_BEYOND_METADATA = "partition_beyond_metadata"
    PARTITIONED_METADATA_FOUND = "partitioned_metadata_found"


class TopicInconsistent(NotAllowed):
    """A topic and its partition metadata disagree (PIP-414).

    ``kind`` and ``topic`` are set where the rule raises it; an error from the wire has only a text.
    """

    def __init__(self, message: str = "", kind: Inconsistency | None = None, topic: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.topic = topic


class OperationNotAllowed(NotAllowed, http=405):
    """The operation exists, but not for this kind of topic."""


class TopicLimitReached(NotAllowed, http=412):
    """The namespace has reached its limit of topics."""


class PartitionCountAboveMaximum(NotAllowed, http=406):
    """More partitions than ``maxNumPartitionsPerPartitionedTopic``, or fewer than one, at creation."""


class ExpansionAboveMaximum(NotAllowed, http=422):
    """More partitions than ``maxNumPartitionsPerPartitionedTopic``, or fewer than now, at expansion."""


class RequestTooLarge(NotAllowed, http=413):
    """The request asks for more than the broker returns at once. Smaller requests are answered."""


class InvalidTopicName(PulsarError, wire=ServerError.InvalidTopicName, http=412):
    """The text is not a topic or namespace name."""


class InvalidRequest(PulsarError, wire=ServerError.NotAllowedError, http=400):
    """The request itself is malformed."""


class PreconditionFailed(PulsarError, wire=ServerError.NotAllowedError, http=412):
    """The request is well formed, but its value or the current state does not allow it."""


class Unprocessable(PulsarError, wire=ServerError.NotAllowedError, http=422):
    """The body can be parsed but not used."""


class NotImplementedYet(PulsarError, wire=ServerError.NotAllowedError, http=501):
    """Pulsar has this operation, this broker does not."""


class TopicTerminated(PulsarError, wire=ServerError.TopicTerminatedError, http=412):
    """The topic accepts no more messages."""


class IncompatibleSchema(PulsarError, wire=ServerError.IncompatibleSchema, http=409):
    """The schema is not compatible with the existing ones of the topic."""


class InvalidSchemaDefinition(IncompatibleSchema, http=422):
    """The definition of a schema is invalid for its type."""


class RemoteClusterUnavailable(PulsarError, http=503, retriable=True):
    """Another cluster does not answer, or has no address."""


# --- raised by clients only


class NotConnected(PulsarError, retriable=True):
    """The connection to the broker is gone."""


class OperationTimeout(PulsarError, retriable=True):
    """No answer came in time."""


class NotSupported(PulsarError):
    """The broker is too old for the request, or the client does not offer it."""


class CryptoError(PulsarError):
    """A message could not be encrypted or decrypted: a key is missing, unusable or wrong."""


class DataLoss(PulsarError):
    """Unread entries are no longer stored."""


class AlreadyClosed(PulsarError):
    """The client object was closed."""


class MessageOfAnotherCluster(PulsarError):
    """A message id of a site that the client has left, where it would name another message."""


_BY_WIRE_CODE: Final[Mapping[int, type[PulsarError]]] = {
    error.wire_code: error
    for error in (
        UnknownError, MetadataError, PersistenceError, AuthenticationError, AuthorizationError, ConsumerBusy,
        ServiceNotReady, QuotaExceededError, QuotaExceededException, ChecksumError, UnsupportedVersion, TopicNotFound,
        SubscriptionNotFound, ConsumerNotFound, TooManyRequests, TopicTerminated, ProducerBusy, InvalidTopicName,
        IncompatibleSchema, ConsumerAssignError, NotAllowed, ProducerFenced,
    )
} | dict.fromkeys(
    (
        ServerError.TransactionCoordinatorNotFound, ServerError.InvalidTxnStatus, ServerError.TransactionConflict,
        ServerError.TransactionNotFound,
    ),
    NotSupported,
)  # fmt: skip
_BY_HTTP_STATUS: Final[Mapping[int, type[PulsarError]]] = {
    error.http_status: error
    for error in (
        InvalidRequest, AuthenticationError, AuthorizationError, NotFound, PartitionCountAboveMaximum, Conflict,
        PreconditionFailed, RequestTooLarge, Unprocessable, UnknownError, NotImplementedYet, ServiceNotReady,
    )
}  # fmt: skip


def error_for_wire_code(code: int, message: str) -> PulsarError:
    """Return the error for a code from the binary protocol."""
    return _BY_WIRE_CODE.get(code, UnknownError)(message)


def error_for_http_status(status: int, reason: str) -> PulsarError:
    """Return the error for a REST status of 400 and above."""
    return _BY_HTTP_STATUS.get(status, UnknownError)(reason)
