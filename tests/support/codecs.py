"""Both frame codecs, and what a peer said whichever of them read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import BatchColumns
from interpulse.wire.codec import Codec, native_codec, python_codec
from interpulse.wire.entries import accept_entry
from interpulse.wire.frames import Frame, Received

NATIVE_INSTALLED = find_spec("interpulse_codec") is not None
NATIVE_NEEDED = pytest.mark.skipif(
    not NATIVE_INSTALLED, reason="the native codec is not installed: make setup builds it"
)
CODECS = [
    pytest.param(python_codec(), id="python"),
    pytest.param(native_codec() if NATIVE_INSTALLED else None, id="native", marks=NATIVE_NEEDED),
]
CODECS_HERE = [python_codec(), *([native_codec()] if NATIVE_INSTALLED else [])]


def columns_of(codec: Codec, *batches: tuple[bytes, int, int]) -> BatchColumns:
    """All columns of some batches, also those that the codec makes when they are wanted."""
    found = codec.read_batches(batches)
    return BatchColumns._make(getattr(found, name) for name in BatchColumns._fields)


_QUESTIONS = {pb.BaseCommand.PARTITIONED_METADATA: "partitionMetadata", pb.BaseCommand.LOOKUP: "lookupTopic"}


def said(received: Iterable[Received]) -> list[Any]:
    """What a broker learns from these, command by command: the same whether they came as frames or in runs."""
    return [each for one in received for each in _said(one)]


def _said(received: Received) -> Iterator[Any]:
    if not isinstance(received, Frame):
        yield from said(received.frames())
        return
    command, entry = received.command, received.entry
    if command.type == pb.BaseCommand.SEND and entry is not None:
        send = command.send
        numbers = (send.sequence_id, send.highest_sequence_id, send.num_messages, send.is_chunk, send.marker)
        stored = accept_entry(entry)
        yield "send", send.producer_id, *numbers, None if stored is None else bytes(stored)
    elif command.type == pb.BaseCommand.ACK:
        ack = command.ack
        for each in ack.message_id:
            place = (each.ledgerId, each.entryId, *each.ack_set)
            yield "ack", ack.consumer_id, ack.ack_type, ack.HasField("request_id"), ack.request_id, place
    elif command.type in _QUESTIONS and entry is None:
        question = getattr(command, _QUESTIONS[command.type])
        yield command.type, *(str(getattr(question, field.name)) for field in question.DESCRIPTOR.fields)
    else:
        yield command, None if entry is None else bytes(entry)
