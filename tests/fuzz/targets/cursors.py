"""Records of cursors as they lie in the metadata: read, or refused by one of the errors that their readers await."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interpulse.model.ids import Position
from interpulse.storage.cursors import (
    DEDUPLICATION_CURSOR,
    JSON_CURSORS,
    UNREADABLE,
    CursorCodec,
    CursorRecord,
)
from interpulse.storage.managed_ledger.cursor_codec import PulsarCursors, decode_entry

CODECS: Final[tuple[CursorCodec, ...]] = (JSON_CURSORS, PulsarCursors())
NAMES: Final = ("s", DEDUPLICATION_CURSOR)


def one(data: bytes) -> None:
    for codec in CODECS:
        for name in NAMES:
            try:
                codec.decode(name, data)
                codec.ledger_of(data)
            except UNREADABLE:
                continue
    try:
        decode_entry(data, CursorRecord())
    except UNREADABLE:
        return


def seeds() -> Iterator[bytes]:
    acknowledged = CursorRecord(
        Position(3, 4),
        ranges=((3, 6, 7), (5, 0, 9)),
        batches=((Position(3, 8), (5,)),),
        properties={"a": "b"},
        last_active_ms=5,
    )
    sequences = CursorRecord(Position(3, 4), numbers={"p": 7}, active_ms={"p": 5})
    for codec in CODECS:
        yield codec.encode("s", acknowledged)
        yield codec.encode(DEDUPLICATION_CURSOR, sequences)
