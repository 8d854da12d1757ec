"""The messages that survive compaction: the newest of every key, unless it is a tombstone. Pure.

Memory is bounded for any number of keys: one pass over all messages remembers `keys_max` keys at most, and one bit per
message. With more keys, the pass continues with half of them, chosen by their digest, and the other half gets a pass of
its own later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from interpulse.broker.live.compaction.compaction_entries import (
    Chunk,
    EntryView,
    MessageView,
    Treatment,
    survivor_of,
    view_of,
)
from interpulse.storage.api import LogEntry

_ALL_BITS: Final = 64  # bits of a digest that select its share


class KeyShare(NamedTuple):
    """The keys whose digest ends in these bits."""

    bits: int = 0
    width: int = 0

    def has(self, key: bytes) -> bool:
        return int.from_bytes(key[:8], "little") & ((1 << self.width) - 1) == self.bits

    def halves(self) -> tuple[KeyShare, KeyShare]:
        return KeyShare(self.bits, self.width + 1), KeyShare(self.bits | 1 << self.width, self.width + 1)


class Choice:
    """The surviving messages, by number. Complete when every share of keys had its pass."""

    def __init__(self, *, keys_max: int, keyless_kept: bool = False) -> None:
        self.keys_max = keys_max
        self.keyless_kept = keyless_kept
        self.looks_needed = [KeyShare()]
        self._bits = bytearray()

    def keep(self, number: int) -> None:
        index = number >> 3
        if index >= len(self._bits):
            self._bits.extend(bytes(index + 1 - len(self._bits)))
        self._bits[index] |= 1 << (number & 7)

    def keeps(self, number: int) -> bool:
        index = number >> 3
        return index < len(self._bits) and bool(self._bits[index] >> (number & 7) & 1)

    @property
    def count(self) -> int:
        """The number of surviving messages."""
        return int.from_bytes(self._bits, "little").bit_count()

    def next_look(self) -> Look:
        """Return a pass over all messages, from the first; some share still needs it."""
        return Look(self, self.looks_needed.pop())


class Look:
    """One pass over all entries, in order, for a share of the keys."""

    def __init__(self, choice: Choice, share: KeyShare) -> None:
        self.messages = 0
        """The messages seen so far, which is the number of the next one."""
        self.present = 0
        """Messages that a reader would get."""
        self._choice = choice
        self._share = share
        self._newest: dict[bytes, int | tuple[int, ...]] = {}
        self._chunks: dict[str, tuple[str, list[int]]] = {}

    def see(self, views: Iterable[EntryView]) -> None:
        """Process the next entries."""
        for view in views:
            if view.treatment is not Treatment.DROPPED:
                self.present += sum(not message.is_gone for message in view.messages)
            if view.chunk is not None:
                self._see_chunk(view.messages[0], view.chunk)
            elif view.treatment is Treatment.KEPT:
                self._choice.keep(self.messages)
            elif view.treatment is not Treatment.DROPPED:
                for number, message in enumerate(view.messages, self.messages):
                    if not message.is_gone:
                        self._see_message(message, number)
            self.messages += len(view.messages)
            if len(self._newest) > self._choice.keys_max:
                self._give_half_away()

    def end(self) -> None:
        """End the pass: the newest message of each key now survives."""
        for numbers in self._newest.values():
            self._keep(numbers)
        for _, begun in self._chunks.values():  # the rest of these messages is after the horizon
            self._keep(tuple(begun))

    def _see_message(self, message: MessageView, numbers: int | tuple[int, ...]) -> None:
        key = message.key
        if key is None:
            if self._choice.keyless_kept:
                self._keep(numbers)
        elif self._share.has(key):
            if message.is_tombstone:
                self._newest.pop(key, None)
            else:
                self._newest[key] = numbers

    def _see_chunk(self, message: MessageView, chunk: Chunk) -> None:
        """Process a chunk. A chunked message counts at its last chunk, and only if it is complete.

        A producer sends one such message at a time, so a new one means that the previous one will never be complete.
        """
        uuid, begun = self._chunks.get(chunk.producer, ("", []))
        begun = [*begun, self.messages] if uuid == chunk.uuid else [self.messages]
        if chunk.is_last:
            self._chunks.pop(chunk.producer, None)
            self._see_message(message, tuple(begun))
        else:
            self._chunks[chunk.producer] = chunk.uuid, begun

    def _keep(self, numbers: int | tuple[int, ...]) -> None:
        for number in (numbers,) if isinstance(numbers, int) else numbers:
            self._choice.keep(number)

    def _give_half_away(self) -> None:
        assert self._share.width < _ALL_BITS, "so many digests do not begin with the same bytes"
        self._share, other = self._share.halves()
        self._choice.looks_needed.append(other)
        self._newest = {key: numbers for key, numbers in self._newest.items() if self._share.has(key)}


def survivors(entries: Sequence[LogEntry], choice: Choice, number: int) -> tuple[list[LogEntry], int]:
    """Return the survivors of these entries, whose first message has this number, and the number after the last."""
    surviving: list[LogEntry] = []
    for entry in entries:
        view = view_of(entry.entry)
        if view.treatment is Treatment.BATCH:
            left = survivor_of(entry.entry, [choice.keeps(number + index) for index in range(len(view.messages))])
            if left is not None:
                surviving.append(LogEntry(entry.position, left))
        elif choice.keeps(number):
            surviving.append(entry)
        number += len(view.messages)
    return surviving, number
