"""The frame codec in Python, the reference for the compiled one. See `interpulse.wire.codec` for its functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from struct import Struct
from typing import Any, Final

from google.protobuf.message import DecodeError

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import read_batches as read_batches
from interpulse.wire.commands import AnswerTemplate, MessageHeadEncoder, message_head, send_head, send_receipt
from interpulse.wire.entries import build_entry, checksum_fits, metadata_in
from interpulse.wire.ids import signed
from interpulse.wire.stamps import StampEncoder, schema_version_field

_unpack_sizes: Final = Struct(">II").unpack_from
_PARTITIONED_METADATA: Final = bytes((0x08, pb.BaseCommand.PARTITIONED_METADATA))
_LOOKUP: Final = bytes((0x08, pb.BaseCommand.LOOKUP))
_METADATA_START: Final = 10
_SIGN: Final = 1 << 63
_PLAIN_FIELDS: Final = frozenset(
    (
        *("producer_name", "sequence_id", "publish_time", "properties", "replicated_from", "partition_key"),
        *("replicate_to", "compression", "uncompressed_size", "num_messages_in_batch", "event_time", "schema_version"),
        *("partition_key_b64_encoded", "ordering_key", "deliver_at_time", "txnid_least_bits", "txnid_most_bits"),
        *("highest_sequence_id", "null_value"),
    )
)
_parse_command: Final = pb.BaseCommand.FromString
_parse_metadata: Final = pb.MessageMetadata.FromString


def take_sends(data: bytes, start: int, frame_bytes_max: int) -> tuple[int, Sequence[int], Sequence[bytes], int] | None:
    """Read consecutive plain SENDs of one producer."""
    producer_id, end = -1, start
    sequence_ids: list[int] = []
    entries: list[bytes] = []
    for command, body, after in _frames(data, start, frame_bytes_max, b"\x08\x06"):
        send = command.send
        if not sequence_ids:
            producer_id = send.producer_id
        entry = data[body:after]
        if send.producer_id != producer_id or not _is_plain(send) or not checksum_fits(entry):
            break
        sequence_ids.append(send.sequence_id)
        entries.append(entry)
        end = after
    return (producer_id, sequence_ids, entries, end) if sequence_ids else None


def take_acks(data: bytes, start: int, frame_bytes_max: int) -> tuple[int, Sequence[tuple[int, int]], int] | None:
    """Read consecutive plain ACKs of one consumer."""
    consumer_id, end = -1, start
    positions: list[tuple[int, int]] = []
    for command, body, after in _frames(data, start, frame_bytes_max, b"\x08\x0a"):
        ack = command.ack
        if not positions:
            consumer_id = ack.consumer_id
        if ack.consumer_id != consumer_id or body < after or not _is_individual(ack):
            break
        positions += [(signed(message_id.ledgerId), signed(message_id.entryId)) for message_id in ack.message_id]
        end = after
    return (consumer_id, positions, end) if positions else None


def take_questions(
    data: bytes, start: int, frame_bytes_max: int
) -> tuple[bool, Sequence[tuple[str, Sequence[int]]], int] | None:
    """Read consecutive plain requests of one type and flag."""
    kind = data[start + 8 : start + 10]
    if kind not in (_PARTITIONED_METADATA, _LOOKUP):
        return None
    flag_of_run, end = False, start
    topics: list[tuple[str, list[int]]] = []
    for command, body, after in _frames(data, start, frame_bytes_max, kind):
        question: pb.CommandPartitionedTopicMetadata | pb.CommandLookupTopic
        if kind == _LOOKUP:
            question, flag = command.lookupTopic, command.lookupTopic.authoritative
        else:
            question, flag = command.partitionMetadata, command.partitionMetadata.metadata_auto_creation_enabled
        if not topics:
            flag_of_run = flag
        if flag != flag_of_run or body < after or not _names_topic_alone(question):
            break
        if topics and topics[-1][0] == question.topic:
            topics[-1][1].append(question.request_id)
        else:
            topics.append((question.topic, [question.request_id]))
        end = after
    return (flag_of_run, topics, end) if topics else None


def take_messages(
    data: bytes, start: int, frame_bytes_max: int
) -> tuple[int, Sequence[tuple[int, int]], Sequence[bytes], Sequence[int], int] | None:
    """Read consecutive plain MESSAGEs of one consumer."""
    consumer_id, end = -1, start
    positions: list[tuple[int, int]] = []
    entries: list[bytes] = []
    counts: list[int] = []
    for command, body, after in _frames(data, start, frame_bytes_max, b"\x08\x09"):
        message = command.message
        if not positions:
            consumer_id = message.consumer_id
        entry = data[body:after]
        if message.consumer_id != consumer_id or not _is_first_delivery(message) or not checksum_fits(entry):
            break
        metadata = _plain_metadata(entry)
        if metadata is None:
            break
        positions.append(_pair(message.message_id))
        entries.append(entry)
        counts.append(metadata.num_messages_in_batch)
        end = after
    return (consumer_id, positions, entries, counts, end) if positions else None


def take_receipts(
    data: bytes, start: int, frame_bytes_max: int
) -> tuple[int, Sequence[int], Sequence[tuple[int, int]], int] | None:
    """Read consecutive receipts of one producer."""
    producer_id, end = -1, start
    sequence_ids: list[int] = []
    positions: list[tuple[int, int]] = []
    for command, body, after in _frames(data, start, frame_bytes_max, b"\x08\x07"):
        receipt = command.send_receipt
        if not positions:
            producer_id = receipt.producer_id
        if receipt.producer_id != producer_id or body < after or not _has_plain_position(receipt):
            break
        sequence_ids.append(receipt.sequence_id)
        positions.append(_pair(receipt.message_id))
        end = after
    return (producer_id, sequence_ids, positions, end) if positions else None


def last_sequences(entries: Sequence[bytes]) -> tuple[str, Sequence[int]] | None:
    """Return the common producer name of all entries, and the highest sequence id of each."""
    names: set[str] = set()
    numbers: list[int] = []
    for entry in entries:
        metadata = _plain_metadata(entry)
        if metadata is None:
            return None
        last = max(metadata.sequence_id, metadata.highest_sequence_id)
        if last >= _SIGN:
            return None
        names.add(metadata.producer_name)
        numbers.append(last)
    return (names.pop(), numbers) if len(names) == 1 else None


def encode_answers(head: bytes, before: bytes, after: bytes, request_ids: Sequence[int]) -> bytes:
    """Return the frames of one answer to these requests."""
    return b"".join(map(AnswerTemplate(head, before, after).frame, request_ids))


def sticky_keys(entries: Sequence[bytes]) -> Sequence[bytes | None]:
    """Return the key of each entry for Key_Shared."""
    return list(map(_sticky_key, entries))


def message_counts(entries: Sequence[bytes]) -> Sequence[int]:
    """Return the number of messages in each entry."""
    return list(map(_message_count, entries))


def receipt_encoder(producer_id: int, partition: int) -> Any:
    """Return the function that makes the frames of receipts."""

    def encode(receipts: Sequence[tuple[int, int, int, int]]) -> bytes:
        frames = [
            send_receipt(producer_id, sequence_id, max(highest_sequence_id, 0), ledger, entry, partition)
            for sequence_id, highest_sequence_id, ledger, entry in receipts
        ]
        return b"".join(frames)

    return encode


def message_encoder(consumer_id: int, partition: int) -> Any:
    """Return the function that makes the frames of deliveries."""
    encode = MessageHeadEncoder(consumer_id, partition).encode

    def encode_all(batch: Sequence[Any], epoch: int | None) -> list[bytes]:
        pieces: list[bytes] = []
        for (ledger, entry_id), entry, redelivery_count, ack_set, _ in batch:
            if redelivery_count or ack_set or epoch is not None:
                head = message_head(
                    consumer_id,
                    ledger,
                    entry_id,
                    len(entry),
                    partition=partition,
                    redelivery_count=redelivery_count,
                    ack_set=ack_set,
                    consumer_epoch=epoch,
                )
            else:
                head = encode(ledger, entry_id, len(entry))
            pieces += (head, entry)
        return pieces

    return encode_all


def send_encoder(producer_id: int) -> Any:
    """Return the function that encodes SENDs."""

    def encode(sequence_ids: Sequence[int], counts: Sequence[int], entries: Sequence[bytes]) -> list[bytes]:
        pieces: list[bytes] = []
        for sequence_id, count, entry in zip(sequence_ids, counts, entries, strict=True):
            highest = sequence_id if count != 1 else 0
            size = len(entry)
            pieces.append(send_head(producer_id, sequence_id, size, num_messages=count, highest_sequence_id=highest))
            pieces.append(entry)
        return pieces

    return encode


def entry_stamper(constant: bytes, keys: tuple[bytes, bytes, bytes]) -> Any:
    """Return the function that copies entries."""
    fields = StampEncoder(constant, keys).fields

    def stamp(
        entries: Sequence[bytes],
        positions: Sequence[tuple[int, int]],
        sequence_ids: Sequence[int],
        start: int,
        schemas: Sequence[tuple[bytes, bytes]],
    ) -> tuple[list[bytes], list[int]]:
        copies: list[bytes] = []
        counts: list[int] = []
        versions = dict(schemas)
        for entry, position, sequence_id in islice(zip(entries, positions, sequence_ids, strict=True), start, None):
            metadata = _plain_metadata(entry)
            if metadata is None or not _is_copied_as_it_is(metadata, versions):
                break
            raw = metadata_in(entry) or b""
            has_schema = metadata.HasField("schema_version")
            version = schema_version_field(versions[metadata.schema_version]) if has_schema else b""
            added = fields(metadata, position, sequence_id)
            copies.append(build_entry(raw + version + added, memoryview(entry)[_METADATA_START + len(raw) :]))
            counts.append(metadata.num_messages_in_batch)
        return copies, counts

    return stamp


def _is_copied_as_it_is(metadata: pb.MessageMetadata, versions: Mapping[bytes, bytes]) -> bool:
    if metadata.HasField("replicated_from") or metadata.replicate_to:
        return False
    if metadata.HasField("txnid_least_bits") or metadata.HasField("txnid_most_bits"):
        return False
    if type(metadata.producer_name) is not str:
        return False
    return not metadata.HasField("schema_version") or metadata.schema_version in versions


def _plain_metadata(entry: bytes) -> pb.MessageMetadata | None:
    """Return the metadata of an entry that starts with its checksum and has no rare field, else None."""
    raw = metadata_in(entry)
    if raw is None:
        return None
    try:
        metadata = _parse_metadata(raw)
    except DecodeError:
        return None
    if metadata.num_messages_in_batch < 1 or not metadata.IsInitialized():
        return None
    return metadata if all(field.name in _PLAIN_FIELDS for field, _ in metadata.ListFields()) else None


def _is_first_delivery(message: pb.CommandMessage) -> bool:
    if message.redelivery_count or message.ack_set or message.HasField("consumer_epoch"):
        return False
    return message.IsInitialized() and not message.message_id.ack_set


def _has_plain_position(receipt: pb.CommandSendReceipt) -> bool:
    return receipt.IsInitialized() and receipt.HasField("message_id") and not receipt.message_id.ack_set


def _pair(message_id: pb.MessageIdData) -> tuple[int, int]:
    return signed(message_id.ledgerId), signed(message_id.entryId)


def _sticky_key(entry: bytes) -> bytes | None:
    metadata_bytes = metadata_in(entry)
    if metadata_bytes is None:
        return None
    try:
        metadata = _parse_metadata(metadata_bytes)
    except DecodeError:
        return None
    if metadata.ordering_key:
        return metadata.ordering_key
    if metadata.partition_key_b64_encoded or not metadata.HasField("partition_key"):
        return None
    key: str | bytes = metadata.partition_key  # bytes if the producer did not write UTF-8
    return key if isinstance(key, bytes) else key.encode()


def _message_count(entry: bytes) -> int:
    metadata_bytes = metadata_in(entry)
    if metadata_bytes is None:
        return 0
    try:
        metadata = _parse_metadata(metadata_bytes)
    except DecodeError:
        return 0
    if metadata.HasField("marker_type") or metadata.num_chunks_from_msg > 1:
        return 0
    count = metadata.num_messages_in_batch
    return count if count > 0 else 1


def _frames(
    data: bytes, start: int, frame_bytes_max: int, command_type: bytes
) -> Iterator[tuple[pb.BaseCommand, int, int]]:
    """Yield consecutive complete commands of one type, with begin and end of the bytes behind each."""
    while data.startswith(command_type, start + 8):
        total_size, command_size = _unpack_sizes(data, start)
        body, end = start + 8 + command_size, start + 4 + total_size
        if total_size > frame_bytes_max or body > end or end > len(data):
            return
        try:
            command = _parse_command(data[start + 8 : body])
        except DecodeError:
            return
        if command.type != command_type[1]:  # the last of two type fields counts
            return
        yield command, body, end
        start = end


def _is_plain(send: pb.CommandSend) -> bool:
    if send.num_messages != 1 or send.highest_sequence_id or send.is_chunk or send.marker:
        return False
    return bool(send.sequence_id or send.HasField("sequence_id")) and bool(
        send.producer_id or send.HasField("producer_id")
    )


def _names_topic_alone(question: pb.CommandPartitionedTopicMetadata | pb.CommandLookupTopic) -> bool:
    topic: str | bytes = question.topic  # bytes if it is not UTF-8
    if not question.IsInitialized() or type(topic) is not str:
        return False
    if question.original_principal or question.original_auth_data or question.original_auth_method:
        return False
    return isinstance(question, pb.CommandPartitionedTopicMetadata) or not (
        question.advertised_listener_name or question.properties
    )


def _is_individual(ack: pb.CommandAck) -> bool:
    if ack.ack_type != pb.CommandAck.Individual or ack.HasField("request_id") or ack.properties:
        return False
    ids = ack.message_id
    return bool(ids) and ack.IsInitialized() and not any(message_id.ack_set for message_id in ids)
