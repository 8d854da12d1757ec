"""Assembly of chunked messages from their entries."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from interpulse.model.errors import CryptoError
from interpulse.model.ids import Position
from interpulse.wire.entries import ParsedEntry

_log = logging.getLogger(__name__)


class Assembled(NamedTuple):
    """Complete message and the entries it came in."""

    entry: ParsedEntry
    positions: list[Position]
    problem: CryptoError | None = None
    """Reason why a chunk is still encrypted."""


@dataclass(slots=True)
class _Partial:
    pieces: list[memoryview] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    problem: CryptoError | None = None


class ChunkAssembler:
    """Assembles chunks into messages.

    At most ``messages_max`` messages may be incomplete. When another one begins, the oldest is dropped and
    ``on_given_up`` receives the positions of its chunks.
    """

    def __init__(
        self, messages_max: int = 10, on_given_up: Callable[[list[Position]], None] = lambda positions: None
    ) -> None:
        self._messages_max = messages_max
        self._on_given_up = on_given_up
        self._partial: dict[str, _Partial] = {}

    def add(self, entry: ParsedEntry, position: Position, problem: CryptoError | None = None) -> Assembled | None:
        """Add a chunk. Return the whole message with its last chunk, otherwise None.

        A chunk that does not continue its message is dropped.
        """
        metadata = entry.metadata
        if metadata.chunk_id == 0:
            self._partial.pop(metadata.uuid, None)
            if len(self._partial) >= self._messages_max:
                self._on_given_up(self._partial.pop(next(iter(self._partial))).positions)
            self._partial[metadata.uuid] = _Partial()
        partial = self._partial.get(metadata.uuid)
        if partial is None or len(partial.pieces) != metadata.chunk_id:
            self._partial.pop(metadata.uuid, None)
            _log.warning("chunk dropped, earlier chunks are missing uuid=%s chunk=%d", metadata.uuid, metadata.chunk_id)
            return None
        partial.pieces.append(entry.payload)
        partial.positions.append(position)
        partial.problem = partial.problem or problem
        if metadata.chunk_id < metadata.num_chunks_from_msg - 1:
            return None
        del self._partial[metadata.uuid]
        whole = memoryview(b"".join(partial.pieces))
        joined = ParsedEntry(metadata, entry.metadata_bytes, whole, entry.broker_metadata, entry.was_encrypted)
        return Assembled(joined, partial.positions, partial.problem)

    def clear(self) -> None:
        self._partial.clear()
