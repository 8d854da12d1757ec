"""The frame codec: what travels once per message, or by the thousand, read and written in runs.

There are two: one compiled, the module `interpulse_codec` of the folder ``native``, and one in Python. They give the
same bytes and read the same frames; whichever is there is taken, the compiled one first. ``INTERPULSE_CODEC=python``
or ``native`` in the environment demands one of them.

A codec reads plain frames only, those that clients send for nearly every message. Everything else, be it unusual,
damaged, too large or not complete, it leaves where it is: for protobuf, which has the errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, Final, NamedTuple, TypeAlias

__all__ = ["Codec", "Questions", "chosen_codec", "chosen_name", "codec", "native_codec", "python_codec"]

Receipts: TypeAlias = Sequence[tuple[int, int, int, int]]
Questions: TypeAlias = Sequence[tuple[str, Sequence[int]]]
Messages: TypeAlias = Sequence[tuple[Any, bytes, int, tuple[int, ...], int]]
Places: TypeAlias = Sequence[tuple[int, int]]
Stamper: TypeAlias = Callable[
    [Sequence[bytes], Places, Sequence[int], int, Sequence[tuple[bytes, bytes]]], tuple[Sequence[bytes], Sequence[int]]
]

_VARIABLE: Final = "INTERPULSE_CODEC"
_PIECE_BYTES_LARGE: Final = 32 * 1024
"""An entry from this size on stays a piece of its own: copying it costs more than another piece."""
_DELIVERED_BYTES_LARGE: Final = 4 * 1024
"""The same of an entry that is delivered, whose pieces are joined when they are sent."""


class Codec(NamedTuple):
    """One implementation. Positions are pairs of ledger and entry, -1 where the wire has 2^64-1."""

    name: str
    take_sends: Callable[[bytes, int, int], tuple[int, Sequence[int], Sequence[bytes], int] | None]
    """(bytes, where to begin, largest frame) -> producer id, sequence ids, entries, where to go on.

    The plain SENDs of one producer that follow each other: each one whole message that is no marker, with a checksum,
    which fits. The entries are copies. None if there is no such SEND.
    """
    take_acks: Callable[[bytes, int, int], tuple[int, Sequence[tuple[int, int]], int] | None]
    """The same for the plain ACKs of one consumer: individual, of whole entries, without an answer."""
    take_questions: Callable[[bytes, int, int], tuple[bool, Questions, int] | None]
    """(bytes, where to begin, largest frame) -> flag, topics, where to go on.

    The plain questions of one type that follow each other and have the same flag: PARTITIONED_METADATA with whether it
    may create, LOOKUP with whether it is authoritative. A plain one names its topic, but neither who asks for whom
    nor a listener. Topics stand in the order of the questions, each with the request ids of those that follow each
    other.
    """
    take_messages: Callable[[bytes, int, int], tuple[int, Places, Sequence[bytes], Sequence[int], int] | None]
    """(bytes, where to begin, largest frame) -> consumer id, positions, entries, message counts, where to go on.

    The plain MESSAGEs of one consumer that follow each other: each a whole entry that was not delivered before, begins
    with a checksum that fits, and has plain metadata. The entries are copies.
    """
    take_receipts: Callable[[bytes, int, int], tuple[int, Sequence[int], Places, int] | None]
    """The same for SEND_RECEIPTs of one producer: producer id, sequence ids, positions, where to go on."""
    sticky_keys: Callable[[Sequence[bytes]], Sequence[bytes | None]]
    """Entries -> the key of each that Key_Shared goes by: its ordering key, else its partition key.

    None if an entry has none, has it in base64, or is not plain: its first bytes are not the checksum, or its metadata
    is damaged or has unusual fields.
    """
    message_counts: Callable[[Sequence[bytes]], Sequence[int]]
    """Entries -> the messages of each; 0 of a marker, a chunk, and one that is not plain, as of `sticky_keys`."""
    last_sequences: Callable[[Sequence[bytes]], tuple[str, Sequence[int]] | None]
    """Entries -> the producer name that is in all of them, and the highest sequence id that each names.

    None if they have several names, or one is not plain, or has a number that is below zero.
    """
    receipt_encoder: Callable[[int, int], Callable[[Receipts], bytes]]
    """(producer id, partition or -1) -> the function that makes the frames of some receipts.

    A receipt is (sequence id, highest sequence id, ledger, entry); a highest one of 0 or less was not sent.
    """
    message_encoder: Callable[[int, int], Callable[[Messages, int | None], list[bytes]]]
    """(consumer id, partition or -1) -> the function that makes the frames of some deliveries.

    Its arguments are the deliveries and the consumer epoch, None = without; its pieces joined are the frames.
    """
    send_encoder: Callable[[int], Callable[[Sequence[int], Sequence[int], Sequence[bytes]], list[bytes]]]
    """Producer id -> the function that makes the SEND frames of some entries.

    Its arguments are sequence ids, message counts and entries; its pieces joined are the frames. The SEND of an entry
    of several messages has the sequence id as its highest one too.
    """
    entry_stamper: Callable[[bytes, tuple[bytes, bytes, bytes]], Stamper]
    """(constant, keys), as of a `StampEncoder` -> the function that makes the copies of some entries.

    Its arguments are lists of entries, of their positions and of the sequence ids of the copies, where to begin in
    these, and versions of the schema with those that the copies shall have. It gives the copies, ready to be stored,
    and their message counts, up to the first entry whose metadata is not plain, which has a transaction, an origin or
    addressees, or a version of the schema that is not among these.
    """
    split_batch: Callable[[bytes, int, int], bytes | None]
    """(bytes, where a batch begins that is not compressed, number of messages) -> where the payload of each begins and
    ends.

    Pairs of numbers of four bytes, as the machine has them. None if the metadata of a message has more than its size
    and a sequence id, or the batch is damaged.
    """
    join_payloads: Callable[[Sequence[tuple[bytes, bytes]]], tuple[bytes, bytes]]
    """Batches with such bounds of theirs -> all payloads behind each other, and where each begins and the last ends.

    Raises ValueError for bounds that are outside of their batch.
    """
    encode_answers: Callable[[bytes, bytes, bytes, Sequence[int]], bytes]
    """(head, what stands before the request id, what stands behind it, request ids) -> the frames.

    The first three are an `AnswerTemplate`.
    """


def python_codec() -> Codec:
    """The codec in Python, the reference."""
    from interpulse.wire import python_codec as module

    return Codec(
        "python",
        module.take_sends,
        module.take_acks,
        module.take_questions,
        module.take_messages,
        module.take_receipts,
        module.sticky_keys,
        module.message_counts,
        module.last_sequences,
        module.receipt_encoder,
        module.message_encoder,
        module.send_encoder,
        module.entry_stamper,
        module.split_batch,
        module.join_payloads,
        module.encode_answers,
    )


def native_codec() -> Codec:
    """The compiled codec. Raises ImportError where it is not installed, or is older than this."""
    import interpulse_codec as module

    if not hasattr(module, "message_counts"):
        raise ImportError(
            "the installed module interpulse_codec is older than this interpulse:"
            " install it again from the folder native (pip install ./native)"
        )

    def message_encoder(consumer_id: int, partition: int) -> Callable[[Messages, int | None], list[bytes]]:
        def encode(batch: Messages, epoch: int | None) -> list[bytes]:
            return module.encode_messages(consumer_id, partition, epoch, batch, _DELIVERED_BYTES_LARGE)

        return encode

    def receipt_encoder(producer_id: int, partition: int) -> Callable[[Receipts], bytes]:
        return partial(module.encode_receipts, producer_id, partition)

    def send_encoder(producer_id: int) -> Callable[[Sequence[int], Sequence[int], Sequence[bytes]], list[bytes]]:
        def encode(sequence_ids: Sequence[int], counts: Sequence[int], entries: Sequence[bytes]) -> list[bytes]:
            return module.encode_sends(producer_id, sequence_ids, counts, entries, _PIECE_BYTES_LARGE)

        return encode

    def entry_stamper(constant: bytes, keys: tuple[bytes, bytes, bytes]) -> Stamper:
        return partial(module.stamp_entries, constant, keys)

    return Codec(
        "native",
        module.take_sends,
        module.take_acks,
        module.take_questions,
        module.take_messages,
        module.take_receipts,
        module.sticky_keys,
        module.message_counts,
        module.last_sequences,
        receipt_encoder,
        message_encoder,
        send_encoder,
        entry_stamper,
        module.split_batch,
        module.join_payloads,
        module.encode_answers,
    )


def chosen_name(environment: Mapping[str, str]) -> str:
    """The name of the codec that the environment demands, else of the best one. Raises ImportError, ValueError."""
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
    """The codec of that name. Raises ImportError, ValueError."""
    return native_codec() if chosen_name(environment) == "native" else python_codec()


@cache
def codec() -> Codec:
    """The codec of this process. Raises ImportError, ValueError."""
    return chosen_codec(os.environ)


def _native_installed() -> bool:
    try:
        return find_spec("interpulse_codec") is not None
    except ValueError:  # something without a specification has its name
        return False
