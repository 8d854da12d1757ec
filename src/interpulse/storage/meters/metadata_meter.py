"""How often a metadata store was read and written, and how long that took, in the buckets of Pulsar's metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from interpulse.storage.meters.histogram import Histogram

__all__ = ["OPERATIONS", "OPERATION_MS", "MetadataMeter"]

OPERATION_MS: Final = (1.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)
OPERATIONS: Final = ("get", "put", "del")


class MetadataMeter:
    """Counts since the start. Each key that is read, set or removed is one operation and took as long as its call."""

    def __init__(self) -> None:
        self.succeeded = {operation: Histogram(OPERATION_MS) for operation in OPERATIONS}
        self.failed = {operation: Histogram(OPERATION_MS) for operation in OPERATIONS}
        self.put_bytes = 0

    @contextmanager
    def reading(self, keys: int) -> Iterator[None]:
        """Values of so many keys are read. Those that memory has are not counted."""
        began = time.perf_counter()
        counted = self.failed
        try:
            yield
            counted = self.succeeded
        finally:
            counted["get"].add((time.perf_counter() - began) * 1000, keys)

    @contextmanager
    def committing(self, put_sizes: Sequence[int], deleted: int) -> Iterator[None]:
        """Values of these sizes are set and so many keys removed, or what is raised says that nothing of it is."""
        began = time.perf_counter()
        counted = self.failed
        try:
            yield
            counted = self.succeeded
            self.put_bytes += sum(put_sizes)
        finally:
            ms = (time.perf_counter() - began) * 1000
            counted["put"].add(ms, len(put_sizes))
            counted["del"].add(ms, deleted)
