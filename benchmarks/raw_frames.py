"""Frames for loads from plain sockets: encoded beforehand, and their answers counted without parsing them."""

import struct

import crc32c

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_batch

SEND_RECEIPT = pb.BaseCommand.SEND_RECEIPT
MESSAGE = pb.BaseCommand.MESSAGE


def encode(command: pb.BaseCommand) -> bytes:
    """One frame without payload."""
    body = command.SerializeToString()
    return struct.pack(">II", len(body) + 4, len(body)) + body


def encode_send(sequence_id: int, payload: bytes, *, producer_name: str = "raw", key: str | None = None) -> bytes:
    """One SEND frame of producer 1 with one message that is not batched."""
    metadata = pb.MessageMetadata(
        producer_name=producer_name, sequence_id=sequence_id, publish_time=1, partition_key=key
    )
    return _encode_entry(metadata, payload, 1)


def encode_sends(count: int, payload_bytes: int, *, keys: int = 0) -> bytes:
    """`count` SEND frames with ascending sequence ids, joined; their keys, if any, take turns."""
    payload = b"x" * payload_bytes
    return b"".join(
        encode_send(sequence_id, payload, key=f"key-{sequence_id % keys}" if keys else None)
        for sequence_id in range(count)
    )


def encode_batches(count: int, messages: int, payload_bytes: int) -> bytes:
    """`count` SEND frames with ascending sequence ids, joined, each a batch of so many messages."""
    payload = b"x" * payload_bytes
    batch = pack_batch((pb.SingleMessageMetadata(payload_size=0), payload) for _ in range(messages))
    return b"".join(
        _encode_entry(
            pb.MessageMetadata(
                producer_name="raw", sequence_id=sequence_id, publish_time=1, num_messages_in_batch=messages
            ),
            batch,
            messages,
        )
        for sequence_id in range(count)
    )


def _encode_entry(metadata: pb.MessageMetadata, payload: bytes, messages: int) -> bytes:
    encoded = metadata.SerializeToString()
    part = struct.pack(">I", len(encoded)) + encoded + payload
    entry = struct.pack(">HI", 0x0E01, crc32c.crc32c(part)) + part
    send = pb.CommandSend(producer_id=1, sequence_id=metadata.sequence_id, num_messages=messages)
    body = pb.BaseCommand(type=pb.BaseCommand.SEND, send=send).SerializeToString()
    return struct.pack(">II", 4 + len(body) + len(entry), len(body)) + body + entry


def encode_flow(consumer_id: int, permits: int) -> bytes:
    """One FLOW frame."""
    return encode(
        pb.BaseCommand(type=pb.BaseCommand.FLOW, flow=pb.CommandFlow(consumer_id=consumer_id, messagePermits=permits))
    )


def encode_lookup(request_id: int, topic: str) -> bytes:
    """One LOOKUP frame."""
    lookup = pb.CommandLookupTopic(topic=topic, request_id=request_id)
    return encode(pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=lookup))


def encode_partitions(request_id: int, topic: str) -> bytes:
    """One PARTITIONED_METADATA frame that creates nothing (PIP-344)."""
    question = pb.CommandPartitionedTopicMetadata(
        topic=topic, request_id=request_id, metadata_auto_creation_enabled=False
    )
    return encode(pb.BaseCommand(type=pb.BaseCommand.PARTITIONED_METADATA, partitionMetadata=question))


def whole_frames(stream: bytes) -> tuple[list[bytes], bytes]:
    """The frames that are complete in a stream, and what is left of it."""
    frames = []
    position, end = 0, len(stream)
    while position + 4 <= end:
        after = position + 4 + int.from_bytes(stream[position : position + 4])
        if after > end:
            break
        frames.append(stream[position:after])
        position = after
    return frames, stream[position:]


class FrameCounter:
    """Counts the frames of one type in a stream of bytes, without parsing them."""

    def __init__(self, command_type: int) -> None:
        self.count = 0
        self._command_type = command_type
        self._rest = b""

    def feed(self, received: bytes) -> int:
        """Takes what the socket gave, returns how many wanted frames it completed."""
        stream = self._rest + received if self._rest else received
        position, end, found = 0, len(stream), 0
        wanted = self._command_type
        unpack = struct.Struct(">I").unpack_from
        while position + 4 <= end:
            after = position + 4 + unpack(stream, position)[0]
            if after > end:
                break
            # A command starts with the tag and the value of its type; both fit one byte for all that is counted here.
            if stream[position + 9] == wanted:
                found += 1
            position = after
        self._rest = stream[position:]
        self.count += found
        return found
