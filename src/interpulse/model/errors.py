"""Every failure a caller can meet, one class each.

::

    PulsarError
    ├── UnknownError
    ├── MetadataError
    │   └── NamespaceElsewhere (412)
    ├── PersistenceError
    ├── AuthenticationError, AuthorizationError
    │   ├── Unauthorized (401)
    │   └── CertificateError         (client side only)
    ├── ServiceNotReady, UnknownListener (500), TooManyRequests
    ├── ConsumerBusy, ConsumerAssignError, ConsumerNotFound
    ├── ProducerBusy, ProducerFenced, QuotaExceededError, QuotaExceededException
    │   └── NoRoomLeft (503)
    ├── ChecksumError
    ├── UnsupportedVersion
    ├── NotFound
    │   ├── TopicNotFound, NamespaceNotFound, TenantNotFound, ClusterNotFound
    │   ├── SubscriptionNotFound, SchemaNotFound, PartitionedTopicNotFound, PolicyNotFound
    ├── Conflict
    │   └── AlreadyExists, NotEmpty
    ├── NotAllowed
    │   ├── TopicInconsistent        (PIP-414)
    │   ├── OperationNotAllowed (405)
    │   ├── PartitionCountAboveMaximum, ExpansionAboveMaximum, TopicLimitReached
    │   ├── RequestTooLarge (413)
    ├── InvalidTopicName, InvalidRequest (400), PreconditionFailed (412), Unprocessable (422), Forbidden (403)
    ├── TopicTerminated
    ├── IncompatibleSchema
    │   └── InvalidSchemaDefinition (422)
    ├── RemoteClusterUnavailable
    ├── NotImplementedYet (501)
    └── client side only: NotConnected, OperationTimeout, NotSupported, CryptoError, DataLoss,
        AlreadyClosed

``wire_code`` is Pulsar's ServerError number, ``http_status`` the REST status, ``retriable`` whether asking again may
succeed without any change. Front ends translate with these three; nothing else decides.
All classes keep plain text in ``args``, so they travel between processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import ClassVar, Final

__all__ = [
    "AlreadyClosed",
    "AlreadyExists",
    "AuthenticationError",
    "AuthorizationError",
    "CertificateError",
    "ChecksumError",
    "ClusterNotFound",
    "Conflict",
    "ConsumerAssignError",
    "ConsumerBusy",
    "ConsumerNotFound",
    "CryptoError",
    "DataLoss",
    "ExpansionAboveMaximum",
    "Forbidden",
    "IncompatibleSchema",
    "Inconsistency",
    "InvalidRequest",
    "InvalidSchemaDefinition",
    "InvalidTopicName",
    "MetadataError",
    "NamespaceElsewhere",
    "NamespaceNotFound",
    "NoRoomLeft",
    "NotAllowed",
    "NotConnected",
    "NotEmpty",
    "NotFound",
    "NotImplementedYet",
    "NotSupported",
    "OperationNotAllowed",
    "OperationTimeout",
    "PartitionCountAboveMaximum",
    "PartitionedTopicNotFound",
    "PersistenceError",
    "PolicyNotFound",
    "PreconditionFailed",
    "ProducerBusy",
    "ProducerFenced",
    "PulsarError",
    "QuotaExceededError",
    "QuotaExceededException",
    "RemoteClusterUnavailable",
    "RequestTooLarge",
    "SchemaNotFound",
    "ServerError",
    "ServiceNotReady",
    "SubscriptionNotFound",
    "TenantNotFound",
    "TooManyRequests",
    "TopicInconsistent",
    "TopicLimitReached",
    "TopicNotFound",
    "TopicTerminated",
    "Unauthorized",
    "UnknownError",
    "UnknownListener",
    "Unprocessable",
    "UnsupportedVersion",
]


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

    def __init__(self, message: str = "") -> None:
        super().__init__(message)


class UnknownError(PulsarError):
    """The peer failed without saying why."""


class MetadataError(PulsarError):
    """The metadata store could not answer, or holds an unusable record."""

    wire_code = ServerError.MetadataError
    retriable = True


class NamespaceElsewhere(MetadataError):
    """The namespace is on other clusters, and none of them is a peer to which clients could be sent."""

    http_status = 412


class PersistenceError(PulsarError):
    """An entry could not be made durable or read; it is not acknowledged."""

    wire_code = ServerError.PersistenceError
    retriable = True


class AuthenticationError(PulsarError):
    """The credentials were not accepted."""

    wire_code = ServerError.AuthenticationError
    http_status = 401


class CertificateError(AuthenticationError):
    """The certificate of a client cannot be used, or is not accepted. The text names file and remedy."""


class AuthorizationError(PulsarError):
    """The role may not do this."""

    wire_code = ServerError.AuthorizationError
    http_status = 403


class Unauthorized(AuthorizationError):
    """The role may not do this, with the HTTP status that Pulsar has for topics, tenants and clusters."""

    http_status = 401


class Forbidden(AuthorizationError):
    """Refused for every client, for example a cluster that is not registered."""


class ConsumerBusy(PulsarError):
    """The subscription accepts no further consumer now."""

    wire_code = ServerError.ConsumerBusy
    http_status = 409


class ConsumerAssignError(PulsarError):
    """Key ranges of the consumer overlap with another's."""

    wire_code = ServerError.ConsumerAssignError
    http_status = 409


class ConsumerNotFound(PulsarError):
    """The connection has no such consumer."""

    wire_code = ServerError.ConsumerNotFound
    http_status = 404


class ServiceNotReady(PulsarError):
    """The broker or the topic is starting, moving or closing; ask again."""

    wire_code = ServerError.ServiceNotReady
    http_status = 503
    retriable = True


class UnknownListener(ServiceNotReady):
    """The broker has no listener of this name. HTTP lookup treats that as an error of the server."""

    http_status = 500


class TooManyRequests(PulsarError):
    """No permit is left for this kind of request."""

    wire_code = ServerError.TooManyRequests
    http_status = 503
    retriable = True


class ProducerBusy(PulsarError):
    """The producer name is taken, or the topic is held by an exclusive producer."""

    wire_code = ServerError.ProducerBusy
    http_status = 409


class ProducerFenced(PulsarError):
    """A newer exclusive producer owns the topic."""

    wire_code = ServerError.ProducerFenced
    http_status = 409


class QuotaExceededError(PulsarError):
    """The backlog quota makes producers wait."""

    wire_code = ServerError.ProducerBlockedQuotaExceededError
    http_status = 412


class QuotaExceededException(PulsarError):
    """The backlog quota refuses producers."""

    wire_code = ServerError.ProducerBlockedQuotaExceededException
    http_status = 412


class NoRoomLeft(QuotaExceededException):
    """The broker cannot store messages until its disk has room.

    For official clients it is a quota: only with this code do they fail pending messages immediately and reconnect by
    themselves.
    """

    http_status = 503


class ChecksumError(PulsarError):
    """The bytes do not match their CRC32C."""

    wire_code = ServerError.ChecksumError
    http_status = 400


class UnsupportedVersion(PulsarError):
    """The command belongs to a part of the protocol that is not offered here."""

    wire_code = ServerError.UnsupportedVersionError
    http_status = 501


class NotFound(PulsarError):
    """A named thing does not exist."""

    wire_code = ServerError.TopicNotFound
    http_status = 404


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


class SubscriptionNotFound(NotFound):
    """The topic has no such subscription."""

    wire_code = ServerError.SubscriptionNotFound


class Conflict(PulsarError):
    """An existing resource conflicts with the request."""

    wire_code = ServerError.NotAllowedError
    http_status = 409


class AlreadyExists(Conflict):
    """The name is taken."""


class NotEmpty(Conflict):
    """The resource is not empty, and deletion was not forced."""


class NotAllowed(PulsarError):
    """The rules of the topic or the broker forbid it for good."""

    wire_code = ServerError.NotAllowedError
    http_status = 409


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


class OperationNotAllowed(NotAllowed):
    """The operation exists, but not for this kind of topic."""

    http_status = 405


class TopicLimitReached(NotAllowed):
    """The namespace has reached its limit of topics."""

    http_status = 412


class PartitionCountAboveMaximum(NotAllowed):
    """More partitions than ``maxNumPartitionsPerPartitionedTopic``, or fewer than one, at creation."""

    http_status = 406


class ExpansionAboveMaximum(NotAllowed):
    """More partitions than ``maxNumPartitionsPerPartitionedTopic``, or fewer than now, at expansion."""

    http_status = 422


class RequestTooLarge(NotAllowed):
    """The request asks for more than the broker returns at once. Smaller requests are answered."""

    http_status = 413


class InvalidTopicName(PulsarError):
    """The text is not a topic or namespace name."""

    wire_code = ServerError.InvalidTopicName
    http_status = 412


class InvalidRequest(PulsarError):
    """The request itself is malformed."""

    wire_code = ServerError.NotAllowedError
    http_status = 400


class PreconditionFailed(PulsarError):
    """The request is well formed, but its value or the current state does not allow it."""

    wire_code = ServerError.NotAllowedError
    http_status = 412


class Unprocessable(PulsarError):
    """The body can be parsed but not used."""

    wire_code = ServerError.NotAllowedError
    http_status = 422


class NotImplementedYet(PulsarError):
    """Pulsar has this operation, this broker does not."""

    wire_code = ServerError.NotAllowedError
    http_status = 501


class TopicTerminated(PulsarError):
    """The topic accepts no more messages."""

    wire_code = ServerError.TopicTerminatedError
    http_status = 412


class IncompatibleSchema(PulsarError):
    """The schema is not compatible with the existing ones of the topic."""

    wire_code = ServerError.IncompatibleSchema
    http_status = 409


class InvalidSchemaDefinition(IncompatibleSchema):
    """The definition of a schema is invalid for its type."""

    http_status = 422


class RemoteClusterUnavailable(PulsarError):
    """Another cluster does not answer, or has no address."""

    http_status = 503
    retriable = True


class NotConnected(PulsarError):
    """The connection to the broker is gone."""

    retriable = True


class OperationTimeout(PulsarError):
    """No answer came in time."""

    retriable = True


class NotSupported(PulsarError):
    """The broker is too old for the request, or the client does not offer it."""


class CryptoError(PulsarError):
    """A message could not be encrypted or decrypted: a key is missing, unusable or wrong."""


class DataLoss(PulsarError):
    """Unread entries are no longer stored."""


class AlreadyClosed(PulsarError):
    """The client object was closed."""


_CLASS_BY_WIRE_CODE: Final[Mapping[int, type[PulsarError]]] = {
    ServerError.UnknownError: UnknownError,
    ServerError.MetadataError: MetadataError,
    ServerError.PersistenceError: PersistenceError,
    ServerError.AuthenticationError: AuthenticationError,
    ServerError.AuthorizationError: AuthorizationError,
    ServerError.ConsumerBusy: ConsumerBusy,
    ServerError.ServiceNotReady: ServiceNotReady,
    ServerError.ProducerBlockedQuotaExceededError: QuotaExceededError,
    ServerError.ProducerBlockedQuotaExceededException: QuotaExceededException,
    ServerError.ChecksumError: ChecksumError,
    ServerError.UnsupportedVersionError: UnsupportedVersion,
    ServerError.TopicNotFound: TopicNotFound,
    ServerError.SubscriptionNotFound: SubscriptionNotFound,
    ServerError.ConsumerNotFound: ConsumerNotFound,
    ServerError.TooManyRequests: TooManyRequests,
    ServerError.TopicTerminatedError: TopicTerminated,
    ServerError.ProducerBusy: ProducerBusy,
    ServerError.InvalidTopicName: InvalidTopicName,
    ServerError.IncompatibleSchema: IncompatibleSchema,
    ServerError.ConsumerAssignError: ConsumerAssignError,
    ServerError.TransactionCoordinatorNotFound: NotSupported,
    ServerError.InvalidTxnStatus: NotSupported,
    ServerError.NotAllowedError: NotAllowed,
    ServerError.TransactionConflict: NotSupported,
    ServerError.TransactionNotFound: NotSupported,
    ServerError.ProducerFenced: ProducerFenced,
}

_CLASS_BY_HTTP_STATUS: Final[Mapping[int, type[PulsarError]]] = {
    400: InvalidRequest,
    401: AuthenticationError,
    403: AuthorizationError,
    404: NotFound,
    406: PartitionCountAboveMaximum,
    409: Conflict,
    412: PreconditionFailed,
    413: RequestTooLarge,
    422: Unprocessable,
    500: UnknownError,
    501: NotImplementedYet,
    503: ServiceNotReady,
}


def error_for_wire_code(code: int, message: str) -> PulsarError:
    """Return the error for a code from the binary protocol."""
    return _CLASS_BY_WIRE_CODE.get(code, UnknownError)(message)


def error_for_http_status(status: int, reason: str) -> PulsarError:
    """Return the error for a REST status of 400 and above."""
    return _CLASS_BY_HTTP_STATUS.get(status, UnknownError)(reason)
