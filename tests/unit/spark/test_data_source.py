"""The registration of the data source."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

from interpulse.spark import register


class Registry:
    """Spark's registry of data sources, which counts the calls that are in it at the same time."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.together = 0
        self._inside = 0

    def register(self, source: Any) -> None:
        self._inside += 1
        self.together = max(self.together, self._inside)
        time.sleep(0.01)
        self._inside -= 1
        self.names.append(source.name())


def test_registrations_of_several_threads_follow_each_other() -> None:
    registry = Registry()
    session: Any = SimpleNamespace(dataSource=registry)
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(register, session) for _ in range(4)]:
            done.result()
    assert (registry.together, sorted(registry.names)) == (1, ["interpulse"] * 4 + ["pulsar"] * 4)
