"""Choice of the partition for a message."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Final, Literal

from interpulse.wire.hashing import java_string_hash, murmur3_hash

HashingScheme = Literal["java-string", "murmur3"]
RoutingMode = Literal["round-robin", "single"]

_HASHES: Final[dict[HashingScheme, Callable[[str], int]]] = {
    "java-string": java_string_hash,
    "murmur3": lambda key: murmur3_hash(key.encode()),
}


class Router:
    """Routes messages with a key by its hash, as Pulsar's Java client does, and others round-robin or to one partition.

    The single partition is chosen at random. Round-robin changes the partition every ``stride`` messages, so that
    consecutive messages can share a batch.
    """

    def __init__(
        self, *, mode: RoutingMode = "round-robin", hashing: HashingScheme = "java-string", stride: int = 1
    ) -> None:
        self._hash = _HASHES[hashing]
        self._mode = mode
        self._stride = stride
        self._start = random.randrange(2**31)
        self._counter = itertools.count()

    def choose(self, key: str | None, partitions: int) -> int:
        """Return the partition index for a message with this key (base64 text for binary keys)."""
        if key is not None:
            return self._hash(key) % partitions
        if self._mode == "single":
            return self._start % partitions
        return (self._start + next(self._counter) // self._stride) % partitions
