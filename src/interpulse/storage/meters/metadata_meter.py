"""Counts and latencies of reads and writes of a metadata store, in the buckets of Pulsar's metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from interpulse.storage.meters.histogram import Histogram

OPERATION_MS: Final = (1.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)
OPERATIONS: Final = ("get", "put", "del")


class MetadataMeter:
    """Counts since the start. Each key that is read, set or removed is one operation with the latency of its call."""

    def __init__(self) -> None:
        self.succeeded = {operation: Histogram(OPERATION_MS) for operation in OPERATIONS}
        self.failed = {operation: Histogram(OPERATION_MS) for operation in OPERATIONS}
        self.put_bytes = 0

    @contextmanager
    def reading(self, keys: int) -> Iterator[None]:
        """Measure a read of ``keys`` values from the store. Values from memory are not counted."""
        began = time.perf_counter()
        counted = self.failed
        try:
            yield
            counted = self.succeeded
        finally:
            counted["get"].add((time.perf_counter() - began) * 1000, keys)

    @contextmanager
    def committing(self, put_sizes: Sequence[int], deleted: int) -> Iterator[None]:
        """Measure a commit that sets values of these sizes and removes ``deleted`` keys; errors count as failed."""
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
