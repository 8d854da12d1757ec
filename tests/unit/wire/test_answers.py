"""Every request that can fail has an answer that repeats its id, of the type that the request expects."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.binary.handlers import AWAITING, INLINE
from interpulse.model.errors import NotAllowed, ServerError
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.answers import error_response, request_id_of
from interpulse.wire.frames import FrameDecoder

TYPES = pb.BaseCommand
ANSWER_TYPES = {
    TYPES.PARTITIONED_METADATA: TYPES.PARTITIONED_METADATA_RESPONSE,
    TYPES.LOOKUP: TYPES.LOOKUP_RESPONSE,
    TYPES.BATCH_LOOKUP: TYPES.BATCH_LOOKUP_RESPONSE,
    TYPES.CONSUMER_STATS: TYPES.CONSUMER_STATS_RESPONSE,
    TYPES.GET_SCHEMA: TYPES.GET_SCHEMA_RESPONSE,
    TYPES.GET_OR_CREATE_SCHEMA: TYPES.GET_OR_CREATE_SCHEMA_RESPONSE,
}


def request_of(kind: int) -> pb.BaseCommand:
    """A command of this type with request id 7 where it has one."""
    command = pb.BaseCommand()
    command.type = kind  # type: ignore[assignment]
    fields = {field.number: field for field in pb.BaseCommand.DESCRIPTOR.fields}
    content = getattr(command, fields[kind].name)
    content.SetInParent()
    if "request_id" in content.DESCRIPTOR.fields_by_name:
        content.request_id = 7
    return command


@pytest.mark.parametrize("kind", sorted(AWAITING))
def test_error_response_when_request_has_an_id_then_typed_answer_repeats_it(kind: Any) -> None:
    command = request_of(kind)
    (answer,) = FrameDecoder().feed(error_response(command, NotAllowed("no")))
    assert answer.command.type == ANSWER_TYPES.get(kind, TYPES.ERROR)
    content = answer.command.ListFields()[1][1]
    code = content.error_code if hasattr(content, "error_code") else content.error
    assert (content.request_id, code) == (7, ServerError.NotAllowedError)


def test_request_id_when_command_has_none_then_minus_one() -> None:
    command = request_of(TYPES.WATCH_SCALABLE_TOPICS_CLOSE)
    assert request_id_of(command) == -1
    assert request_id_of(request_of(TYPES.FLOW)) == -1


def test_handlers_then_every_command_for_a_broker_has_exactly_one() -> None:
    of_the_protocol = {TYPES.PING, TYPES.PONG}  # answered by the protocol itself
    handled = set(INLINE) | set(AWAITING) | of_the_protocol
    assert not set(INLINE) & set(AWAITING)
    for_clients = {
        value.number
        for value in pb.BaseCommand.DESCRIPTOR.enum_types_by_name["Type"].values
        if value.name.endswith(("_RESPONSE", "_SUCCESS", "_UPDATE"))
        or value.name
        in {
            "CONNECTED",
            "SEND_RECEIPT",
            "SEND_ERROR",
            "MESSAGE",
            "SUCCESS",
            "ERROR",
            "REACHED_END_OF_TOPIC",
            "ACTIVE_CONSUMER_CHANGE",
            "AUTH_CHALLENGE",
            "TOPIC_MIGRATED",
        }
    }
    every = {value.number for value in pb.BaseCommand.DESCRIPTOR.enum_types_by_name["Type"].values}
    assert handled == every - for_clients | {TYPES.AUTH_RESPONSE}
