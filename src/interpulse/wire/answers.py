"""Answers to requests, and the failures that they carry, as a broker writes them and a client reads them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from interpulse.model.errors import PulsarError, TopicMoved, error_for_wire_code
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands import consumer_moved, encode, producer_moved, success
from interpulse.wire.ids import unsigned

_TYPES: Final = pb.BaseCommand
_CONTENTS: Final = {
    field.number: (field.name, field.message_type.fields_by_name)
    for field in _TYPES.DESCRIPTOR.fields
    if field.message_type is not None
}
"""The content of each type of command: its name, and its fields."""

ANSWERS: Final[dict[int, str]] = {
    kind: name
    for kind, (name, fields) in _CONTENTS.items()
    if "request_id" in fields
    and _TYPES.Type.Name(_TYPES.Type.ValueType(kind)).endswith(("SUCCESS", "RESPONSE", "ERROR"))
}
"""Field with the content of each answer, which includes its request id."""

_PARTITIONS: Final = pb.CommandPartitionedTopicMetadataResponse
_LOOKUP: Final = pb.CommandLookupTopicResponse
_FAILURES: Final[dict[int, Callable[..., Any]]] = {
    _TYPES.PARTITIONED_METADATA: partial(_PARTITIONS, response=_PARTITIONS.Failed),
    _TYPES.LOOKUP: partial(_LOOKUP, response=_LOOKUP.Failed),
    _TYPES.BATCH_LOOKUP: pb.CommandBatchLookupTopicResponse,
    _TYPES.CONSUMER_STATS: pb.CommandConsumerStatsResponse,
    _TYPES.GET_SCHEMA: pb.CommandGetSchemaResponse,
    _TYPES.GET_OR_CREATE_SCHEMA: pb.CommandGetOrCreateSchemaResponse,
}
"""Constructors of the answers that report a failure, by the type of the request; ERROR for all others."""

_FAILED: Final[dict[int, int]] = {
    _TYPES.PARTITIONED_METADATA_RESPONSE: _PARTITIONS.Failed,
    _TYPES.LOOKUP_RESPONSE: _LOOKUP.Failed,
}
"""Values of ``response`` that report a failure. Other answers report it by the presence of a code."""


def request_id_of(command: pb.BaseCommand) -> int:
    """Return the request id for the answer, -1 for commands without one."""
    request_id: int = getattr(getattr(command, _CONTENTS[command.type][0]), "request_id", -1)
    return request_id


def requester_of(command: pb.BaseCommand) -> str:
    """Describe the sender of the command for the operator."""
    if command.type == _TYPES.PRODUCER:
        return f"producer {command.producer.producer_name or 'without name'}"
    if command.type == _TYPES.SUBSCRIBE:
        return f"consumer of subscription {command.subscribe.subscription}"
    return f"client with {_TYPES.Type.Name(command.type)}"


def error_response(command: pb.BaseCommand, error: PulsarError) -> bytes:
    """Return the frame that answers ``command`` with ``error``."""
    return failed_answer(command.type, request_id_of(command), error.wire_code, str(error))


def redirection(command: pb.BaseCommand, error: TopicMoved) -> bytes:
    """Return the frames that send the client to another cluster.

    They take the place of an answer for a new producer, as in Pulsar. A consumer and a producer that reconnects get a
    success before: without it, C++ consumers that reconnect deadlock, and producers wait for the doubled time of all
    their attempts. A producer with a schema needs its version from a real answer, so it gets none either.
    """
    if command.type == _TYPES.SUBSCRIBE:
        subscribe = command.subscribe
        moved = consumer_moved(subscribe.consumer_id, error.service_url, error.service_url_tls)
        return success(subscribe.request_id) + moved
    producer = command.producer
    moved = producer_moved(producer.producer_id, error.service_url, error.service_url_tls)
    if not producer.epoch or producer.HasField("schema"):
        return moved
    reopened = pb.CommandProducerSuccess(request_id=producer.request_id, producer_name=producer.producer_name)
    return encode(reopened) + moved


def failed_answer(request_type: int, request_id: int, code: int, message: str) -> bytes:
    """Return the frame that reports a failure; its type follows the type of the request."""
    answer = _FAILURES.get(request_type, pb.CommandError)(request_id=unsigned(request_id))
    if "error_code" in answer.DESCRIPTOR.fields_by_name:
        answer.error_code, answer.error_message = code, message
    else:
        answer.error, answer.message = code, message
    return encode(answer)


def failure_of(command: pb.BaseCommand) -> PulsarError | None:
    """Return the failure that an answer carries, in any of the protocol's forms."""
    content = getattr(command, ANSWERS[command.type])
    fields = content.DESCRIPTOR.fields_by_name
    if "error_code" in fields:
        return (
            error_for_wire_code(content.error_code, content.error_message) if content.HasField("error_code") else None
        )
    if "error" not in fields:
        return None
    failed = _FAILED.get(command.type)
    has_failed = content.HasField("error") if failed is None else content.response == failed
    return error_for_wire_code(content.error, content.message) if has_failed else None
