"""The frame codec: commands that are sent once per message, or by the thousand, read and written in runs.

There are two codecs: a compiled one, the module `interpulse_codec` of the folder ``native``, and one in Python. They
write the same bytes and read the same frames. The compiled one is preferred if it is installed.
``INTERPULSE_CODEC=python`` or ``native`` in the environment demands one of them.

A codec reads only plain frames, those that clients send for nearly every message. It leaves all others (unusual,
damaged, too large or incomplete) to protobuf, which reports the errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from interpulse.wire.batches import BatchColumns, ParsedColumns

Receipts: TypeAlias = Sequence[tuple[int, int, int, int]]
Questions: TypeAlias = Sequence[tuple[str, Sequence[int]]]
Messages: TypeAlias = Sequence[tuple[Any, bytes, int, tuple[int, ...], int]]
Positions: TypeAlias = Sequence[tuple[int, int]]
Stamper: TypeAlias = Callable[
    [Sequence[bytes], Positions, Sequence[int], int, Sequence[tuple[bytes, bytes]]],
    tuple[Sequence[bytes], Sequence[int]],
]

_VARIABLE: Final = "INTERPULSE_CODEC"
_PIECE_BYTES_LARGE: Final = 32 * 1024
"""An entry of this size or more stays a piece of its own: a copy costs more than another piece."""
_DELIVERED_BYTES_LARGE: Final = 4 * 1024
"""The size from which on a delivered entry stays a piece of its own; its pieces are joined when they are sent."""


class Codec(NamedTuple):
    """One implementation. Positions are pairs of ledger and entry, -1 where the wire has 2^64-1."""

    name: str
    take_sends: Callable[[bytes, int, int], tuple[int, Sequence[int], Sequence[bytes], int] | None]
    """(bytes, start, largest frame) -> producer id, sequence ids, entries, end.

    Reads consecutive plain SENDs of one producer: each one whole message that is no marker, with a correct checksum.
    The entries are copies. None if there is no such SEND.
    """
    take_acks: Callable[[bytes, int, int], tuple[int, Sequence[tuple[int, int]], int] | None]
    """(bytes, start, largest frame) -> consumer id, positions, end.

    Reads consecutive plain ACKs of one consumer: individual, of whole entries, without an answer.
    """
    take_questions: Callable[[bytes, int, int], tuple[bool, Questions, int] | None]
    """(bytes, start, largest frame) -> flag, topics, end.

    Reads consecutive plain requests of one type with the same flag: PARTITIONED_METADATA that may or may not create,
    LOOKUP that is or is not authoritative. A plain request names its topic, but no original client and no listener.
    Topics are in the order of the requests, each with the request ids of consecutive ones.
    """
    take_messages: Callable[[bytes, int, int], tuple[int, Positions, Sequence[bytes], Sequence[int], int] | None]
    """(bytes, start, largest frame) -> consumer id, positions, entries, message counts, end.

    Reads consecutive plain MESSAGEs of one consumer: each a whole entry, delivered for the first time, that starts with
    a correct checksum and has plain metadata. The entries are copies.
    """
    take_receipts: Callable[[bytes, int, int], tuple[int, Sequence[int], Positions, int] | None]
    """(bytes, start, largest frame) -> producer id, sequence ids, positions, end.

    Reads consecutive SEND_RECEIPTs of one producer.
    """
    sticky_keys: Callable[[Sequence[bytes]], Sequence[bytes | None]]
    """Entries -> the key of each for Key_Shared: its ordering key, else its partition key.

    None if an entry has no key, has it in base64, or is not plain: it does not start with the checksum, or its metadata
    is damaged or has unusual fields.
    """
    message_counts: Callable[[Sequence[bytes]], Sequence[int]]
    """Entries -> the number of messages in each; 0 for a marker, a chunk, and an entry that is not plain."""
    last_sequences: Callable[[Sequence[bytes]], tuple[str, Sequence[int]] | None]
    """Entries -> their common producer name, and the highest sequence id of each.

    None if they have several names, or one is not plain or has a negative number.
    """
    receipt_encoder: Callable[[int, int], Callable[[Receipts], bytes]]
    """(producer id, partition or -1) -> the function that encodes receipts as frames.

    A receipt is (sequence id, highest sequence id, ledger, entry); a highest one of 0 or less was not sent.
    """
    message_encoder: Callable[[int, int], Callable[[Messages, int | None], list[bytes]]]
    """(consumer id, partition or -1) -> the function that encodes deliveries as frames.

    Its arguments are the deliveries and the consumer epoch (None = without). It returns pieces that form the frames
    when joined.
    """
    send_encoder: Callable[[int], Callable[[Sequence[int], Sequence[int], Sequence[bytes]], list[bytes]]]
    """Producer id -> the function that encodes entries as SEND frames.

    Its arguments are sequence ids, message counts and entries. It returns pieces that form the frames when joined. For
    an entry of several messages the sequence id is also the highest one.
    """
    entry_stamper: Callable[[bytes, tuple[bytes, bytes, bytes]], Stamper]
    """(constant, keys), as in `StampEncoder` -> the function that copies entries.

    Its arguments are lists of entries, of their positions and of the copies' sequence ids, the start in these, and a
    map of schema versions to those of the copies. It returns the copies, ready to be stored, and their message counts.
    It stops at the first entry whose metadata is not plain, has a transaction, an origin or addressees, or a schema
    version that is not in the map.
    """
    read_batches: Callable[[Sequence[tuple[bytes, int, int]]], BatchColumns | ParsedColumns]
    """Batches -> their messages, as `interpulse.wire.batches.read_batches`, which raises the errors of both."""
    encode_answers: Callable[[bytes, bytes, bytes, Sequence[int]], bytes]
    """(head, bytes before the request id, bytes behind it, request ids) -> the frames.

    The first three are an `AnswerTemplate`.
    """


def python_codec() -> Codec:
    """Return the codec in Python, the reference."""
    from interpulse.wire import python_codec as module

    return _codec("python", vars(module))


def native_codec() -> Codec:
    """Return the compiled codec. Raise ImportError if it is not installed, or older than this package."""
    import interpulse_codec as module

    from interpulse.wire.batches import BatchColumns, read_batches

    if not hasattr(module, "read_batches"):
        raise ImportError(
            "the installed module interpulse_codec is older than this interpulse:"
            " install it again from the folder native (pip install ./native)"
        )

    def message_encoder(consumer_id: int, partition: int) -> Callable[[Messages, int | None], list[bytes]]:
        def encode(batch: Messages, epoch: int | None) -> list[bytes]:
            return module.encode_messages(consumer_id, partition, epoch, batch, _DELIVERED_BYTES_LARGE)

        return encode

    def send_encoder(producer_id: int) -> Callable[[Sequence[int], Sequence[int], Sequence[bytes]], list[bytes]]:
        def encode(sequence_ids: Sequence[int], counts: Sequence[int], entries: Sequence[bytes]) -> list[bytes]:
            return module.encode_sends(producer_id, sequence_ids, counts, entries, _PIECE_BYTES_LARGE)

        return encode

    def read_columns(batches: Sequence[tuple[bytes, int, int]]) -> BatchColumns | ParsedColumns:
        found = module.read_batches(batches)
        if found is None:
            return read_batches(batches)
        counts, numbers, pieces = found
        return BatchColumns._make((counts, *numbers, *pieces))

    encoders = {
        "receipt_encoder": partial(partial, module.encode_receipts),
        "message_encoder": message_encoder,
        "send_encoder": send_encoder,
        "entry_stamper": partial(partial, module.stamp_entries),
        "read_batches": read_columns,
    }
    return _codec("native", vars(module) | encoders)


def _codec(name: str, functions: Mapping[str, Any]) -> Codec:
    return Codec(name, *(functions[field] for field in Codec._fields if field != "name"))


def chosen_name(environment: Mapping[str, str]) -> str:
    """Return the name of the demanded codec, else of the best one. Raise ImportError or ValueError."""
    wanted = environment.get(_VARIABLE, "")
    if wanted not in ("", "native", "python"):
        raise ValueError(f"{_VARIABLE}={wanted} names no codec: set it to native or python, or not at all")
    if wanted == "python" or (installed := _native_installed()):
        return wanted or "native"
    if wanted == "native" and not installed:
        raise ImportError(
            f"{_VARIABLE}=native, and the module interpulse_codec is not installed:"
            " install it from the folder native (pip install ./native), or unset the variable"
        )
    return "python"


def chosen_codec(environment: Mapping[str, str]) -> Codec:
    """Return the codec of `chosen_name`. Raise ImportError or ValueError."""
    return native_codec() if chosen_name(environment) == "native" else python_codec()


@cache
def codec() -> Codec:
    """Return the codec of this process. Raise ImportError or ValueError."""
    return chosen_codec(os.environ)


def _native_installed() -> bool:
    try:
        return find_spec("interpulse_codec") is not None
    except ValueError:  # another object without a specification has its name
        return False
