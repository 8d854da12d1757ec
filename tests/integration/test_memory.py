"""What a broker weighs, idle and per loaded topic: the aims of the benchmarks, held here between their runs."""

import gc
import tracemalloc
from pathlib import Path

import pytest

from benchmarks.contenders import Interpulse
from benchmarks.figures import PARTITIONS, ROWS, loaded_topics, measure_start
from interpulse.testing import InProcessBroker

pytestmark = pytest.mark.slow

ALLOCATED = 0.8
"""Of the memory of a topic, at most so much is allocated; the allocator needs the rest for what lies between."""


def aim_of(figure: str) -> float:
    aim = ROWS[figure].aim
    assert aim is not None
    assert aim.at_most is not None
    return aim.at_most


def test_memory_when_a_broker_is_idle_then_is_within_its_aim(tmp_path: Path) -> None:
    assert measure_start(Interpulse(tmp_path), 0)["memory"].value <= aim_of("memory")


def test_memory_when_topics_are_loaded_then_what_they_allocate_is_within_their_aim(tmp_path: Path) -> None:
    """Bytes are counted, not pages: how these lie in memory differs from run to run by more than a kilobyte a topic."""
    broker = InProcessBroker(tmp_path).start()
    try:
        with loaded_topics(broker, "persistent://public/default/warm"):
            tracemalloc.start()
            before = allocated_bytes()
            with loaded_topics(broker, "persistent://public/default/loaded"):
                per_topic = (allocated_bytes() - before) / PARTITIONS
    finally:
        tracemalloc.stop()
        broker.stop()
    assert per_topic / 1e3 <= ALLOCATED * aim_of("topic_memory")


def allocated_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
