"""The frame that reports a failed request: its type follows the type of the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from interpulse.model.errors import PulsarError
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb

_CONTENT_FIELDS: Final = {
    field.number: field.name for field in pb.BaseCommand.DESCRIPTOR.fields if field.message_type is not None
}


def request_id_of(command: pb.BaseCommand) -> int:
    """Return the request id for the answer, -1 for commands without one."""
    content = getattr(command, _CONTENT_FIELDS[command.type])
    request_id: int = getattr(content, "request_id", -1)
    return request_id


def requester_of(command: pb.BaseCommand) -> str:
    """Describe the sender of the command for the operator."""
    if command.type == pb.BaseCommand.PRODUCER:
        return f"producer {command.producer.producer_name or 'without name'}"
    if command.type == pb.BaseCommand.SUBSCRIBE:
        return f"consumer of subscription {command.subscribe.subscription}"
    return f"client with {pb.BaseCommand.Type.Name(command.type)}"


def error_response(command: pb.BaseCommand, error: PulsarError) -> bytes:
    """Return the frame that answers ``command`` with ``error``."""
    answer = _TYPED.get(command.type, commands.error)
    return answer(request_id_of(command), error.wire_code, str(error))


def _consumer_stats_error(request_id: int, code: int, message: str) -> bytes:
    answer = pb.CommandConsumerStatsResponse(request_id=request_id, error_message=message)
    answer.error_code = code  # type: ignore[assignment]  # the numbers are the same
    return commands.encode(answer)


_TYPED: Final[dict[int, Callable[[int, int, str], bytes]]] = {
    pb.BaseCommand.PARTITIONED_METADATA: commands.partitioned_metadata_error,
    pb.BaseCommand.LOOKUP: commands.lookup_error,
    pb.BaseCommand.BATCH_LOOKUP: commands.batch_lookup_error,
    pb.BaseCommand.CONSUMER_STATS: _consumer_stats_error,
    pb.BaseCommand.GET_SCHEMA: commands.get_schema_error,
    pb.BaseCommand.GET_OR_CREATE_SCHEMA: commands.get_or_create_schema_error,
}
