"""Frames, and runs of similar commands.

A frame is ``total_size command_size command [entry]``; SEND and MESSAGE carry an entry exactly as it is stored
(`wire.entries`). Integers are big-endian. ``total_size`` counts everything after itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError

from interpulse.model.ids import Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.codec import Codec, Questions, codec
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.ids import message_id_to_wire

MESSAGE_BYTES_MAX: Final = 5 * 1024 * 1024
"""The limit for metadata and payload of one message, unless a broker announces another."""

FRAME_OVERHEAD: Final = 10 * 1024
"""The space in a frame that Pulsar reserves for commands and headers."""

FRAME_BYTES_MAX: Final = MESSAGE_BYTES_MAX + FRAME_OVERHEAD
"""The size of a frame with the largest message."""

PROTOCOL_VERSION: Final = 21
"""The newest supported version of the binary protocol."""

_TYPES: Final = pb.BaseCommand
_U32: Final = Struct(">I")
_TWO_U32: Final = Struct(">II")
_unpack_sizes = _TWO_U32.unpack_from
_parse_command = pb.BaseCommand.FromString

_FIELD_BY_TYPE: Final[dict[int, str]] = {
    field.number: field.name for field in pb.BaseCommand.DESCRIPTOR.fields if field.message_type is not None
}
_SEND: Final = _TYPES.SEND
_SEND_HEAD: Final = bytes((0x08, _TYPES.SEND))
_ACK_HEAD: Final = bytes((0x08, _TYPES.ACK))
_FLOW_HEAD: Final = bytes((0x08, _TYPES.FLOW))
_PARTITIONS_HEAD: Final = bytes((0x08, _TYPES.PARTITIONED_METADATA))
_LOOKUP_HEAD: Final = bytes((0x08, _TYPES.LOOKUP))
_MESSAGE_HEAD: Final = bytes((0x08, _TYPES.MESSAGE))
_RECEIPT_HEAD: Final = bytes((0x08, _TYPES.SEND_RECEIPT))
_FLOW_BYTES_MAX: Final = 40
"""The size of the longest plain FLOW."""

_VIEW_BYTES_MIN: Final = 1024
"""Smaller pieces of a frame are joined: a view takes some 300 bytes, and keeps all bytes of its read alive."""


@dataclass(slots=True)
class Frame:
    """One command, and the entry behind it exactly as on the wire; None if the frame has none.

    The entry is a view of the bytes that were read, or separate bytes if the frame came in several reads.
    """

    command: pb.BaseCommand
    entry: bytes | memoryview | None


class SendRun(NamedTuple):
    """Consecutive SENDs of one producer, each with one whole message and a correct checksum."""

    producer_id: int
    sequence_ids: Sequence[int]
    entries: Sequence[bytes]

    def singles(self) -> list[SendRun]:
        """Return the SENDs as runs of one."""
        pairs = zip(self.sequence_ids, self.entries, strict=True)
        return [SendRun(self.producer_id, (sequence_id,), (entry,)) for sequence_id, entry in pairs]

    def frames(self) -> list[Frame]:
        """Return the SENDs as frames."""
        frames = []
        for sequence_id, entry in zip(self.sequence_ids, self.entries, strict=True):
            send = pb.CommandSend(producer_id=self.producer_id, sequence_id=sequence_id)
            frames.append(Frame(pb.BaseCommand(type=_TYPES.SEND, send=send), entry))
        return frames


class AckRun(NamedTuple):
    """Consecutive ACKs of one consumer: individual, of whole entries, without an answer."""

    consumer_id: int
    positions: Sequence[Position]

    def frames(self) -> list[Frame]:
        """Return the ACKs as frames, each of one position."""
        frames = []
        for position in map(message_id_to_wire, self.positions):
            ack = pb.CommandAck(consumer_id=self.consumer_id, ack_type=pb.CommandAck.Individual, message_id=[position])
            frames.append(Frame(pb.BaseCommand(type=_TYPES.ACK, ack=ack), None))
        return frames


class FlowRun(NamedTuple):
    """Consecutive equal FLOWs of one consumer, and their number."""

    consumer_id: int
    permits: int
    times: int

    def frames(self) -> list[Frame]:
        """Return the FLOWs as frames."""
        return [Frame(_flow_command(self.consumer_id, self.permits), None) for _ in range(self.times)]


class PartitionsRun(NamedTuple):
    """Consecutive PARTITIONED_METADATA requests that name their topics and nothing else.

    ``topics`` are in the order of the requests, each with the request ids of consecutive ones.
    """

    create: bool
    topics: Questions

    def frames(self) -> list[Frame]:
        """Return the requests as frames."""
        frames = []
        for topic, request_id in _questions(self.topics):
            question = pb.CommandPartitionedTopicMetadata(topic=topic, request_id=request_id)
            question.metadata_auto_creation_enabled = self.create
            command = pb.BaseCommand(type=_TYPES.PARTITIONED_METADATA, partitionMetadata=question)
            frames.append(Frame(command, None))
        return frames


class LookupRun(NamedTuple):
    """Consecutive LOOKUPs that name their topics and nothing else, as in a `PartitionsRun`."""

    authoritative: bool
    topics: Questions

    @property
    def question_count(self) -> int:
        """The number of requests."""
        return sum(len(request_ids) for _, request_ids in self.topics)

    def frames(self) -> list[Frame]:
        """Return the requests as frames."""
        frames = []
        for topic, request_id in _questions(self.topics):
            question = pb.CommandLookupTopic(topic=topic, request_id=request_id, authoritative=self.authoritative)
            frames.append(Frame(pb.BaseCommand(type=_TYPES.LOOKUP, lookupTopic=question), None))
        return frames


class MessageRun(NamedTuple):
    """Consecutive MESSAGEs to one consumer, each with a whole entry that is delivered for the first time.

    Every entry starts with a correct checksum, and ``counts`` are the numbers of messages in their metadata.
    """

    consumer_id: int
    positions: Sequence[Position]
    entries: Sequence[bytes]
    counts: Sequence[int]

    def frames(self) -> list[Frame]:
        """Return the MESSAGEs as frames."""
        frames = []
        for position, entry in zip(self.positions, self.entries, strict=True):
            message = pb.CommandMessage(consumer_id=self.consumer_id, message_id=message_id_to_wire(position))
            frames.append(Frame(pb.BaseCommand(type=_TYPES.MESSAGE, message=message), entry))
        return frames


class ReceiptRun(NamedTuple):
    """Consecutive SEND_RECEIPTs to one producer."""

    producer_id: int
    sequence_ids: Sequence[int]
    positions: Sequence[Position]

    def frames(self) -> list[Frame]:
        """Return the receipts as frames."""
        frames = []
        for sequence_id, position in zip(self.sequence_ids, self.positions, strict=True):
            receipt = pb.CommandSendReceipt(producer_id=self.producer_id, sequence_id=sequence_id)
            receipt.message_id.CopyFrom(message_id_to_wire(position))
            frames.append(Frame(pb.BaseCommand(type=_TYPES.SEND_RECEIPT, send_receipt=receipt), None))
        return frames


Run: TypeAlias = SendRun | AckRun | FlowRun | PartitionsRun | LookupRun | MessageRun | ReceiptRun
Received: TypeAlias = Frame | Run
_QUESTIONS: Final[dict[bytes, type[PartitionsRun | LookupRun]]] = {
    _PARTITIONS_HEAD: PartitionsRun,
    _LOOKUP_HEAD: LookupRun,
}


class FrameDecoder:
    """A stream of bytes, cut into frames.

    A frame that is complete in one read is returned as a view of it. The pieces of a longer one are stored as they
    came, and its entry is joined once, alone: nothing large is copied twice, and no neighbour with it. A size above
    ``frame_bytes_max`` is refused as soon as its four bytes are there.

    After `gather_runs` the plain commands of one read are returned in runs, with copies of their entries: SENDs, ACKs,
    FLOWs and requests for a broker, MESSAGEs and receipts for a client.
    """

    __slots__ = ("_bytes_needed", "_codec", "_command_size", "_frame_bytes_max", "_pieces", "_take", "bytes_pending")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._pieces: list[memoryview | bytearray] = []
        self.bytes_pending = 0
        """The bytes of an incomplete frame."""
        self._bytes_needed = 4
        self._command_size = 0
        self._codec: Codec | None = None
        self._take = _taken_from_client

    def raise_limit(self, frame_bytes_max: int) -> None:
        """Accept larger frames from now on, after a broker announced its limit."""
        self._frame_bytes_max = max(frame_bytes_max, self._frame_bytes_max)

    def gather_runs(self, by: Codec | None = None, *, from_broker: bool = False) -> None:
        """Return runs of client or broker commands from now on. ``by`` None = the codec of the process."""
        self._codec = by or codec()
        self._take = _taken_from_broker if from_broker else _taken_from_client

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that ``data`` completes, in order.

        Raise RemoteProtocolError; nothing can be fed after that.
        """
        return self.feed_runs(data)  # type: ignore[return-value]  # there are none unless they are asked for

    def feed_runs(self, data: bytes) -> list[Received]:
        """Return the frames and, after `gather_runs`, the runs that ``data`` completes; see `feed`."""
        if not self._pieces:
            return self._cut(data, 0)
        view, start = memoryview(data), 0
        while (missing := self._bytes_needed - self.bytes_pending) <= len(data) - start:
            self._keep(view[start : start + missing])
            start += missing
            if self._bytes_needed > 8:
                return [self._joined(), *self._cut(data, start)]
            self._measure()
        if start < len(data):
            self._keep(view[start:])
        return []

    def _cut(self, data: bytes, start: int) -> list[Received]:
        frames: list[Received] = []
        view = memoryview(data)
        size = len(data)
        while size - start >= 8:
            total_size, command_size = _unpack_sizes(data, start)
            end = start + 4 + total_size
            if total_size > self._frame_bytes_max or command_size > total_size - 4:
                raise RemoteProtocolError(
                    _other_protocol(data[start : start + 4])
                    or f"frame of {total_size} bytes with a command of {command_size} bytes"
                )
            if end > size:
                break
            if self._codec is not None and (taken := self._take(self._codec, data, start, self._frame_bytes_max)):
                run, start = taken
                frames.append(run)
                continue
            body = start + 8 + command_size
            command = _parsed_command(data[start + 8 : body])
            frames.append(Frame(command, view[body:end] if body < end else None))
            start = end
        if start < size:
            self._keep(view[start:])
            self._measure()
        return frames

    def _keep(self, piece: memoryview) -> None:
        self.bytes_pending += len(piece)
        if len(piece) >= _VIEW_BYTES_MIN:
            self._pieces.append(piece)
        elif self._pieces and isinstance(last := self._pieces[-1], bytearray):
            last += piece
        else:
            self._pieces.append(bytearray(piece))

    def _measure(self) -> None:
        """Compute how much of the incomplete frame is needed before the next look."""
        if self.bytes_pending < 4:
            self._bytes_needed = 4
            return
        head = b"".join(piece[:8] for piece in self._pieces)  # several pieces have at most eight bytes in total
        (total_size,) = _U32.unpack_from(head)
        if not 4 < total_size <= self._frame_bytes_max:
            raise RemoteProtocolError(
                _other_protocol(head[:4])
                or f"frame of {total_size} bytes, the limits are 5 and {self._frame_bytes_max}"
            )
        if len(head) < 8:
            self._bytes_needed = 8
            return
        self._bytes_needed = 4 + total_size
        self._command_size = _U32.unpack_from(head, 4)[0]
        if self._command_size > total_size - 4:
            raise RemoteProtocolError(f"frame of {total_size} bytes with a command of {self._command_size} bytes")

    def _joined(self) -> Frame:
        command, entry = _split(self._pieces, 8 + self._command_size)
        self._pieces.clear()
        self.bytes_pending, self._bytes_needed = 0, 4
        return Frame(_parsed_command(command[8:]), entry or None)


def _flow_command(consumer_id: int, permits: int) -> pb.BaseCommand:
    flow = pb.CommandFlow(consumer_id=consumer_id, messagePermits=permits)
    return pb.BaseCommand(type=_TYPES.FLOW, flow=flow)


def _questions(topics: Questions) -> Iterator[tuple[str, int]]:
    return ((topic, request_id) for topic, request_ids in topics for request_id in request_ids)


def _taken_from_client(by: Codec, data: bytes, start: int, frame_bytes_max: int) -> tuple[Run, int] | None:
    head = data[start + 8 : start + 10]
    if head == _SEND_HEAD:
        if (sends := by.take_sends(data, start, frame_bytes_max)) is not None:
            return SendRun(*sends[:3]), sends[3]
    elif head == _ACK_HEAD:
        if (acks := by.take_acks(data, start, frame_bytes_max)) is not None:
            consumer_id, pairs, end = acks
            return AckRun(consumer_id, _positions(pairs)), end
    elif head == _FLOW_HEAD:
        return _taken_flows(data, start)
    elif head in _QUESTIONS and (asked := by.take_questions(data, start, frame_bytes_max)) is not None:
        flag, topics, end = asked
        return _QUESTIONS[head](flag, topics), end
    return None


def _taken_flows(data: bytes, start: int) -> tuple[FlowRun, int] | None:
    """Return the equal plain FLOWs at ``start``, as sent by a client that consumes much."""
    end = start + 4 + _U32.unpack_from(data, start)[0]
    frame = data[start:end]
    flow = _flow_in(frame) if len(frame) <= _FLOW_BYTES_MAX else None
    if flow is None:
        return None
    times = 1
    while data.startswith(frame, end):
        times += 1
        end += len(frame)
    return FlowRun(*flow, times), end


@lru_cache(maxsize=1024)
def _flow_in(frame: bytes) -> tuple[int, int] | None:
    """Return consumer id and permits of a plain FLOW, cached since clients repeat them."""
    _, command_size = _unpack_sizes(frame)
    flow = _parsed_command(frame[8 : 8 + command_size]).flow
    plain = frame == encode_command(_flow_command(flow.consumer_id, flow.messagePermits))
    return (flow.consumer_id, flow.messagePermits) if plain else None


def _taken_from_broker(by: Codec, data: bytes, start: int, frame_bytes_max: int) -> tuple[Run, int] | None:
    head = data[start + 8 : start + 10]
    if head == _MESSAGE_HEAD:
        if (messages := by.take_messages(data, start, frame_bytes_max)) is not None:
            consumer_id, pairs, entries, counts, end = messages
            return MessageRun(consumer_id, _positions(pairs), entries, counts), end
    elif head == _RECEIPT_HEAD and (receipts := by.take_receipts(data, start, frame_bytes_max)) is not None:
        producer_id, sequence_ids, pairs, end = receipts
        return ReceiptRun(producer_id, sequence_ids, _positions(pairs)), end
    return None


def _positions(pairs: Sequence[tuple[int, int]]) -> list[Position]:
    return list(map(tuple.__new__, repeat(Position), pairs))


def _other_protocol(size: bytes) -> str | None:
    """Return the protocol that four bytes too large for a size belong to, or None."""
    if size == b"HTTP":
        return "an HTTP answer: this looks like the port of the web service, the binary protocol has another (6650)"
    if size[:2] in (b"\x15\x03", b"\x16\x03"):  # an alert or a greeting, of any version
        return "TLS on a connection without it: addresses of ports with TLS begin with pulsar+ssl://, of others with pulsar://"
    return None


def _split(pieces: list[memoryview | bytearray], size: int) -> tuple[bytes, bytes]:
    first: list[memoryview | bytearray] = []
    rest = iter(pieces)
    for piece in rest:
        first.append(piece[:size])
        size -= len(first[-1])
        if not size:
            return b"".join(first), b"".join((piece[len(first[-1]) :], *rest))
    raise ValueError(f"{size} bytes are missing")


def _parsed_command(raw: bytes) -> pb.BaseCommand:
    """Parse one command, whose field must be set and complete."""
    try:
        command = _parse_command(raw)
    except DecodeError as error:
        raise RemoteProtocolError(f"command that cannot be parsed: {error}") from None
    kind = command.type
    if kind == _SEND:
        # The short way for commands sent once per message, several times cheaper than IsInitialized.
        send = command.send
        if (send.sequence_id or send.HasField("sequence_id")) and (send.producer_id or send.HasField("producer_id")):
            return command
    _check_complete(command)
    return command


def _check_complete(command: pb.BaseCommand) -> None:
    """Refuse what protobuf accepts: an unknown type reads as the first one, CONNECT, and a missing number as zero."""
    kind: int = command.type
    name = _FIELD_BY_TYPE[kind]
    content_present = command.HasField(name)  # type: ignore[arg-type]  # the name comes from the descriptor
    if not content_present or (kind == _TYPES.CONNECT and not command.HasField("type")):
        raise RemoteProtocolError(f"command of an unknown type, or {name} without its content")
    content = getattr(command, name)
    if not content.IsInitialized():
        raise RemoteProtocolError(f"{name} without a required field")
    if kind in _WITH_TEXTS:
        _check_texts(content)


def _holds_texts(descriptor: Descriptor, above: tuple[str, ...] = ()) -> bool:
    """Return True if the message, or one inside it, has texts. ``above`` are the types around it."""
    path = (*above, descriptor.full_name)
    inner = [field.message_type for field in descriptor.fields if field.message_type is not None]
    return any(field.type == FieldDescriptor.TYPE_STRING for field in descriptor.fields) or any(
        _holds_texts(kind, path) for kind in inner if kind.full_name not in path
    )


_UNREAD: Final = frozenset({_TYPES.ACK})
"""A command that is sent once per message, and whose strings are not read."""

_WITH_TEXTS: Final[frozenset[int]] = frozenset(
    field.number
    for field in pb.BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None and field.number not in _UNREAD and _holds_texts(field.message_type)
)
_NO_TEXTS: Final = frozenset({str, int, bool})
"""The values of most fields: strings in UTF-8, or none at all."""


def _check_texts(message: Any) -> None:
    """Refuse strings that are not UTF-8, among the fields that are set. Protobuf returns them as bytes."""
    for field, value in message.ListFields():
        if type(value) in _NO_TEXTS:
            continue
        if field.type == FieldDescriptor.TYPE_STRING:
            if type(value) is bytes or bytes in map(type, value):
                raise RemoteProtocolError(f"{field.name} that is not UTF-8")
        elif field.message_type is not None:
            for inner in value if field.is_repeated else (value,):
                _check_texts(inner)


def encode_command(command: pb.BaseCommand) -> bytes:
    """Encode a frame without an entry."""
    raw = command.SerializeToString()
    size = len(raw)
    return _TWO_U32.pack(size + 4, size) + raw
