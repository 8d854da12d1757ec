"""The errors that a client raises for the error codes of brokers, the inverse of `errors`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from interpulse.model.errors import (
    AuthenticationError,
    AuthorizationError,
    ChecksumError,
    Conflict,
    ConsumerAssignError,
    ConsumerBusy,
    ConsumerNotFound,
    IncompatibleSchema,
    InvalidRequest,
    InvalidTopicName,
    MetadataError,
    NotAllowed,
    NotFound,
    NotImplementedYet,
    NotSupported,
    PartitionCountAboveMaximum,
    PersistenceError,
    PreconditionFailed,
    ProducerBusy,
    ProducerFenced,
    PulsarError,
    QuotaExceededError,
    QuotaExceededException,
    RequestTooLarge,
    ServerError,
    ServiceNotReady,
    SubscriptionNotFound,
    TooManyRequests,
    TopicNotFound,
    TopicTerminated,
    UnknownError,
    Unprocessable,
    UnsupportedVersion,
)

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
