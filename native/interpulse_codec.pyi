"""The compiled frame codec; `interpulse.wire.codec.Codec` says what each function does."""

from collections.abc import Sequence
from typing import Any

def take_sends(data: bytes, start: int, frame_bytes_max: int, /) -> tuple[int, list[int], list[bytes], int] | None: ...
def take_acks(data: bytes, start: int, frame_bytes_max: int, /) -> tuple[int, list[tuple[int, int]], int] | None: ...
def take_questions(
    data: bytes, start: int, frame_bytes_max: int, /
) -> tuple[bool, list[tuple[str, list[int]]], int] | None: ...
def take_messages(
    data: bytes, start: int, frame_bytes_max: int, /
) -> tuple[int, list[tuple[int, int]], list[bytes], list[int], int] | None: ...
def take_receipts(
    data: bytes, start: int, frame_bytes_max: int, /
) -> tuple[int, list[int], list[tuple[int, int]], int] | None: ...
def last_sequences(entries: Sequence[bytes], /) -> tuple[str, list[int]] | None: ...
def encode_sends(
    producer_id: int,
    sequence_ids: Sequence[int],
    counts: Sequence[int],
    entries: Sequence[bytes],
    piece_bytes_large: int,
    /,
) -> list[bytes]: ...
def stamp_entries(
    constant: bytes,
    keys: tuple[bytes, bytes, bytes],
    entries: list[bytes],
    positions: Sequence[tuple[int, int]],
    sequence_ids: Sequence[int],
    start: int,
    schemas: Sequence[tuple[bytes, bytes]],
    /,
) -> tuple[list[bytes], list[int]]: ...
def encode_answers(head: bytes, before: bytes, after: bytes, request_ids: Sequence[int], /) -> bytes: ...
def sticky_keys(entries: Sequence[bytes], /) -> list[bytes | None]: ...
def encode_receipts(producer_id: int, partition: int, receipts: Sequence[tuple[int, int, int, int]], /) -> bytes: ...
def encode_messages(
    consumer_id: int, partition: int, epoch: int | None, batch: Sequence[tuple[Any, ...]], piece_bytes_large: int, /
) -> list[bytes]: ...
