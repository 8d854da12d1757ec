"""Messages of a tail, and the keys that both sites have. Pure."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple

from interpulse.client.consuming.entry_reader import Entry
from interpulse.client.messages import Message, messages_of
from interpulse.model.ids import Position
from interpulse.replication.acknowledgements import Acknowledgements, Span, joined
from interpulse.wire.errors import RemoteProtocolError

_ENCRYPTED: Final = "encrypted: key and batch are not known"


class TailMessage(NamedTuple):
    """One message that the lost site has and the other one lacks, or an entry whose messages cannot be read."""

    topic: str
    position: Position
    batch_index: int
    """Place in the batch, -1 outside of batches."""
    producer: str
    sequence_id: int
    key: str | None
    publish_time: int
    bytes: int
    payload_sha: str | None
    """SHA-256 of the payload as the application sent it, None for a tombstone."""
    acknowledged_by: tuple[str, ...] = ()
    """Subscriptions of the lost site that had acknowledged the message."""
    messages: int = 1
    reason: str | None = None
    """Reason why the row stands for a whole entry, of which the payload is taken as it is stored."""

    def to_json(self) -> dict[str, Any]:
        """Return the members of a line of the list."""
        members = dict(zip(self._fields, self, strict=True))
        members["position"] = str(self.position)
        return members


class CopiedPositions:
    """Positions of the originals of copies. Consecutive ones take the room of one."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._is_joined = True

    def add(self, position: Position) -> None:
        """Add a position, in any order. Ascending ones are cheap."""
        last = self._spans[-1].last if self._spans else None
        if last is not None and last.ledger == position.ledger and last.entry + 1 == position.entry:
            self._spans[-1] = Span(self._spans[-1].first, position)
            return
        self._is_joined = self._is_joined and (last is None or last < position)
        self._spans.append(Span(position, position))

    def __contains__(self, position: object) -> bool:
        if not isinstance(position, Position):
            return False
        if not self._is_joined:
            self._spans, self._is_joined = joined(self._spans), True
        index = bisect_right(self._spans, position, key=itemgetter(0)) - 1
        return index >= 0 and position <= self._spans[index].last


def tail_messages(topic: str, entry: Entry, cursors: Mapping[str, Acknowledgements]) -> Iterator[TailMessage]:
    """Yield the messages of an entry of the lost site, whose subscriptions are ``cursors``.

    Chunks and what cannot be unpacked are one row for each entry, with the reason.
    """
    metadata = entry.parsed.metadata
    if metadata.num_chunks_from_msg > 1:
        yield _whole(topic, entry, cursors, f"chunk {metadata.chunk_id + 1} of {metadata.num_chunks_from_msg}")
    elif metadata.encryption_keys:
        yield _whole(topic, entry, cursors, _ENCRYPTED)
    else:
        try:
            messages = list(entry_messages(topic, entry))
        except RemoteProtocolError as error:
            yield _whole(topic, entry, cursors, str(error))
            return
        whole = _holders(cursors, entry.position)
        masks = {name: held.masks[entry.position] for name, held in cursors.items() if entry.position in held.masks}
        for message in messages:
            yield _row(topic, entry.position, message, _acknowledged(whole, masks, message.id.batch_index))


def entry_messages(topic: str, entry: Entry) -> Iterator[Message]:
    """Return the messages of an entry. Raise RemoteProtocolError if they cannot be unpacked."""
    ledger, entry_id = entry.position
    return messages_of(entry.parsed, topic=topic, ledger=ledger, entry_id=entry_id, partition=-1, redelivery_count=0)


def payload_sha(content: bytes | memoryview | None) -> str | None:
    """Return the SHA-256 of a payload in hexadecimal digits, None for a tombstone."""
    return None if content is None else hashlib.sha256(content).hexdigest()


def _row(topic: str, position: Position, message: Message, acknowledged_by: tuple[str, ...]) -> TailMessage:
    content = message.content
    return TailMessage(
        topic,
        position,
        message.id.batch_index,
        message.producer_name,
        message.sequence_id,
        message.key,
        message.publish_time_ms,
        0 if content is None else len(content),
        payload_sha(content),
        acknowledged_by,
    )


def _whole(topic: str, entry: Entry, cursors: Mapping[str, Acknowledgements], reason: str) -> TailMessage:
    metadata, payload = entry.parsed.metadata, entry.parsed.payload
    is_first = metadata.chunk_id == 0 or metadata.num_chunks_from_msg <= 1
    return TailMessage(
        topic,
        entry.position,
        -1,
        metadata.producer_name,
        metadata.sequence_id,
        metadata.partition_key if metadata.HasField("partition_key") else None,
        metadata.publish_time,
        len(payload),
        payload_sha(payload),
        _holders(cursors, entry.position),
        metadata.num_messages_in_batch if is_first else 0,
        reason,
    )


def _holders(cursors: Mapping[str, Acknowledgements], position: Position) -> tuple[str, ...]:
    return tuple(name for name, held in cursors.items() if held.holds(position))


def _acknowledged(whole: tuple[str, ...], masks: Mapping[str, int], index: int) -> tuple[str, ...]:
    if not masks or index < 0:
        return whole
    return (*whole, *(name for name, waiting in masks.items() if not waiting >> index & 1 and name not in whole))


class KeyedMessage(NamedTuple):
    """Newest message of a key at one site."""

    position: Position
    batch_index: int
    publish_time: int
    payload_sha: str | None


def keyed(row: TailMessage) -> KeyedMessage:
    """Return what is remembered of a message with a key."""
    return KeyedMessage(row.position, row.batch_index, row.publish_time, row.payload_sha)


class Conflict(NamedTuple):
    """A key that is in the tail, and in what the other site has taken since its promotion."""

    topic: str
    key: str
    tail: KeyedMessage
    local: KeyedMessage

    def to_json(self) -> dict[str, Any]:
        """Return the members of a line of the list."""
        sides = {"tail": self.tail, "local": self.local}
        members = {
            f"{side}_{name}": str(value) if name == "position" else value
            for side, message in sides.items()
            for name, value in message._asdict().items()
            if name != "payload_sha"
        }
        is_same = self.tail.payload_sha == self.local.payload_sha
        return {"topic": self.topic, "key": self.key, **members, "same_payload": is_same}


def conflicts(topic: str, tail: Mapping[str, KeyedMessage], local: Mapping[str, KeyedMessage]) -> Iterator[Conflict]:
    """Yield the keys that both sites have, in the order of the tail."""
    return (Conflict(topic, key, message, local[key]) for key, message in tail.items() if key in local)
