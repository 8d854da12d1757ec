"""Texts that are not UTF-8, wherever in a command they stand."""

from typing import Any

import pytest

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands import encode
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import FrameDecoder, encode_command
from tests.support.commands import encode_with_entry

COMMANDS = {
    "single": pb.BaseCommand(
        type=pb.BaseCommand.LOOKUP,
        lookupTopic=pb.CommandLookupTopic(topic="AAAA", request_id=1, original_principal="p"),
    ),
    "repeated": pb.BaseCommand(
        type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE,
        getTopicsOfNamespaceResponse=pb.CommandGetTopicsOfNamespaceResponse(request_id=1, topics=["x", "AAAA"]),
    ),
    "inner": pb.BaseCommand(
        type=pb.BaseCommand.PRODUCER,
        producer=pb.CommandProducer(
            topic="x",
            producer_id=1,
            request_id=1,
            schema=pb.Schema(name="AAAA", schema_data=b"", type=pb.Schema.String),
        ),
    ),
    "inner repeated": pb.BaseCommand(
        type=pb.BaseCommand.PRODUCER,
        producer=pb.CommandProducer(
            topic="x", producer_id=1, request_id=1, metadata=[pb.KeyValue(key="k", value="AAAA")]
        ),
    ),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_command_when_a_text_is_not_utf8_then_remote_protocol_error(command: pb.BaseCommand) -> None:
    good = encode_command(command)
    assert len(FrameDecoder().feed(good)) == 1
    with pytest.raises(RemoteProtocolError, match="that is not UTF-8"):
        FrameDecoder().feed(good.replace(b"AAAA", b"\xff\xfe\xed\xa0"))


QUESTIONS = [
    pb.CommandPartitionedTopicMetadata(
        topic="x", request_id=1, original_principal="x", original_auth_data="x", original_auth_method="x"
    ),
    pb.CommandLookupTopic(
        topic="x",
        request_id=1,
        original_principal="x",
        original_auth_data="x",
        original_auth_method="x",
        advertised_listener_name="x",
        properties=[pb.KeyValue(key="k", value="x")],
    ),
]


@pytest.mark.parametrize(
    ("question", "field"),
    [
        (question, field.name)
        for question in QUESTIONS
        for field, value in question.ListFields()
        if field.type == field.TYPE_STRING
    ]
    + [(QUESTIONS[1], "properties")],
)
def test_request_when_a_text_is_not_utf8_then_remote_protocol_error(question: Any, field: str) -> None:
    """Questions have a short way in."""
    asked = type(question)(topic="x", request_id=1)
    if field == "properties":
        asked.properties.add(key="k", value="AAAA")
    else:
        setattr(asked, field, "AAAA")
    good = encode(asked)
    assert len(FrameDecoder().feed(good)) == 1
    with pytest.raises(RemoteProtocolError, match="that is not UTF-8"):
        FrameDecoder().feed(good.replace(b"AAAA", b"\xff\xfe\xed\xa0"))


@pytest.mark.parametrize("question", QUESTIONS, ids=["partitions", "lookup"])
@pytest.mark.parametrize("field", ["topic", "request_id"])
def test_request_when_a_required_field_is_missing_then_remote_protocol_error(question: Any, field: str) -> None:
    command = FrameDecoder().feed(encode(type(question)(topic="x", request_id=1)))[0].command
    command.ListFields()[1][1].ClearField(field)
    with pytest.raises(RemoteProtocolError, match="without a required field"):
        FrameDecoder().feed(encode_with_entry(command, b""))


@pytest.mark.parametrize("question", QUESTIONS, ids=["partitions", "lookup"])
def test_request_when_its_id_is_zero_then_is_accepted(question: Any) -> None:
    asked = type(question)(topic="", request_id=0)
    assert FrameDecoder().feed(encode(asked))[0].command.ListFields()[1][1] == asked


def test_bytes_when_they_are_no_utf8_then_are_bytes() -> None:
    schema = pb.Schema(name="x", schema_data=b"\xff\xfe", type=pb.Schema.String)
    producer = pb.CommandProducer(topic="x", producer_id=1, request_id=1, schema=schema)
    frame = encode_command(pb.BaseCommand(type=pb.BaseCommand.PRODUCER, producer=producer))
    assert FrameDecoder().feed(frame)[0].command.producer.schema.schema_data == b"\xff\xfe"
