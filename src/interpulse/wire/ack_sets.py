"""The unacknowledged messages of a batch: words on the wire, one number here."""

from __future__ import annotations

from collections.abc import Sequence

_WORD = (1 << 64) - 1


def mask_of(ack_set: Sequence[int]) -> int:
    """Return the words of an ``ack_set`` as one number: bit i is 1 while message i is not acknowledged."""
    mask = 0
    for index, word in enumerate(ack_set):
        mask |= (word & _WORD) << (64 * index)
    return mask


def of_batch(mask: int, messages: int) -> int:
    """Return the bits of ``mask`` that are messages of a batch of this size. An absurd size costs nothing."""
    return mask & ((1 << min(max(messages, 0), mask.bit_length())) - 1)


def words_of(mask: int) -> tuple[int, ...]:
    """Return the words of a mask, signed as on the wire."""
    words = []
    while mask:
        word = mask & _WORD
        words.append(word - (1 << 64) if word >> 63 else word)
        mask >>= 64
    return tuple(words)
