"""Commands that answer requests, and the failures they may carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from interpulse.model.errors import PulsarError, error_for_wire_code
from interpulse.wire import pulsar_api_pb2 as pb

ANSWERS: Final[dict[int, str]] = {
    pb.BaseCommand.SUCCESS: "success",
    pb.BaseCommand.ERROR: "error",
    pb.BaseCommand.PRODUCER_SUCCESS: "producer_success",
    pb.BaseCommand.PARTITIONED_METADATA_RESPONSE: "partitionMetadataResponse",
    pb.BaseCommand.LOOKUP_RESPONSE: "lookupTopicResponse",
    pb.BaseCommand.BATCH_LOOKUP_RESPONSE: "batchLookupTopicResponse",
    pb.BaseCommand.CONSUMER_STATS_RESPONSE: "consumerStatsResponse",
    pb.BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE: "getLastMessageIdResponse",
    pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE: "getTopicsOfNamespaceResponse",
    pb.BaseCommand.GET_SCHEMA_RESPONSE: "getSchemaResponse",
    pb.BaseCommand.GET_OR_CREATE_SCHEMA_RESPONSE: "getOrCreateSchemaResponse",
    pb.BaseCommand.ACK_RESPONSE: "ackResponse",
    pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS: "watchTopicListSuccess",
}
"""Field with the content of each answer, which includes its request id."""


def failure_of(command: pb.BaseCommand) -> PulsarError | None:
    """Return the failure that an answer carries, in any of the protocol's five forms."""
    kind = command.type
    content = getattr(command, ANSWERS[kind])
    if kind == pb.BaseCommand.ERROR:
        return error_for_wire_code(content.error, content.message)
    if kind in _FAILS_BY_CODE and content.HasField("error_code"):
        return error_for_wire_code(content.error_code, content.error_message)
    if kind in _FAILS_BY_ERROR and content.HasField("error"):
        return error_for_wire_code(content.error, content.message)
    if kind in _FAILS_BY_RESPONSE and content.response == _FAILS_BY_RESPONSE[kind]:
        return error_for_wire_code(content.error, content.message)
    return None


_FAILS_BY_CODE: Final[Sequence[int]] = (
    pb.BaseCommand.GET_SCHEMA_RESPONSE,
    pb.BaseCommand.GET_OR_CREATE_SCHEMA_RESPONSE,
    pb.BaseCommand.CONSUMER_STATS_RESPONSE,
)
_FAILS_BY_ERROR: Final[Sequence[int]] = (pb.BaseCommand.ACK_RESPONSE, pb.BaseCommand.BATCH_LOOKUP_RESPONSE)
_FAILS_BY_RESPONSE: Final[dict[int, int]] = {
    pb.BaseCommand.LOOKUP_RESPONSE: pb.CommandLookupTopicResponse.Failed,
    pb.BaseCommand.PARTITIONED_METADATA_RESPONSE: pb.CommandPartitionedTopicMetadataResponse.Failed,
}
