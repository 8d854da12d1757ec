"""Values in buckets."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpulse.storage.api import CommitConflict, Delete, Put
from interpulse.storage.metadata.sqlite import SqliteMetadataStore
from interpulse.storage.meters import ENTRY_BYTES, WAIT_MS, Histogram, MetadataMeter, WriteMeter, WrittenEntries
from tests.support.fake_clock import FakeClock


@pytest.mark.parametrize("bounds", [WAIT_MS, ENTRY_BYTES])
def test_value_on_a_bound_belongs_below_it(bounds: tuple[float, ...]) -> None:
    histogram = Histogram(bounds)
    for bound in bounds:
        histogram.add(bound)
    assert histogram.counts == [1] * len(bounds) + [0]
    histogram.add(bounds[-1] + 1, 3)
    assert histogram.counts[-1] == 3
    assert histogram.sum == sum(bounds) + 3 * (bounds[-1] + 1)


def counts(meter: MetadataMeter) -> dict[str, tuple[int, int]]:
    return {each: (meter.succeeded[each].count, meter.failed[each].count) for each in ("get", "put", "del")}


async def test_each_read_key_is_an_operation_unless_cached(tmp_path: Path) -> None:
    store = await SqliteMetadataStore.open(tmp_path / "metadata.sqlite")
    try:
        await store.commit([Put("/a", b"12345"), Put("/b", b"1"), Delete("/c")])
        assert (counts(store.meter), store.meter.put_bytes) == ({"get": (0, 0), "put": (2, 0), "del": (1, 0)}, 6)
        with pytest.raises(CommitConflict):
            await store.commit([Put("/a", b"12345"), Delete("/b")], {"/a": None})
        assert (counts(store.meter), store.meter.put_bytes) == ({"get": (0, 0), "put": (2, 1), "del": (1, 1)}, 6)
        before = store.meter.succeeded["get"].count
        await store.get_many(["/d", "/e"])
        await store.get("/d")
        assert store.meter.succeeded["get"].count == before + 2
    finally:
        await store.close()


@pytest.fixture
def watch() -> FakeClock:
    return FakeClock()


@pytest.fixture
def meter(watch: FakeClock) -> WriteMeter:
    return WriteMeter(watch, period_s=60.0)


def test_entries_are_counted_one_by_one_and_wait_as_long_as_the_first(watch: FakeClock, meter: WriteMeter) -> None:
    entries = [bytes(100), bytes(129), bytes(2_000_000)]
    meter.wrote("t", entries, sum(map(len, entries)), 0.0031)
    meter.wrote("t", [bytes(600)], 600, 2.0)
    watch.now += 60
    written = meter.written_of("t")
    assert written is not None
    assert written.sizes.counts == [1, 1, 1, 0, 0, 0, 0, 0, 1]
    assert (written.sizes.count, written.sizes.sum) == (4, 2_000_829)
    assert written.waits_ms.counts == [0, 0, 3, 0, 0, 0, 0, 0, 0, 1]
    assert written.waits_ms.sum == pytest.approx(2009.3)
    assert (meter.entries, meter.waited_ms) == (4, pytest.approx(2009.3))
    assert list(meter.latest_waits_ms) == [pytest.approx(3.1), 2000.0]


def counts_of_write_meter(meter: WriteMeter, log: str = "t") -> int | None:
    written = meter.written_of(log)
    return None if written is None else written.sizes.count


def test_period_is_reported_once_it_is_over_for_one_period(watch: FakeClock, meter: WriteMeter) -> None:
    assert counts_of_write_meter(meter) is None
    meter.wrote("t", [b"x"], 1, 0.0)
    watch.now += 59
    assert (counts_of_write_meter(meter), counts_of_write_meter(meter, "other")) == (0, None)
    watch.now += 1
    assert counts_of_write_meter(meter) == 1
    watch.now += 60
    assert counts_of_write_meter(meter) is None


def test_period_that_ended_long_ago_is_not_reported_as_the_last_one(watch: FakeClock, meter: WriteMeter) -> None:
    meter.wrote("t", [b"x"], 1, 0.0)
    watch.now += 150
    assert counts_of_write_meter(meter) is None
    watch.now += 29  # periods keep their rhythm
    meter.wrote("t", [b"x"], 1, 0.0)
    watch.now += 1
    assert counts_of_write_meter(meter) == 1


def test_reads_are_reported_as_a_rate_of_the_last_period(watch: FakeClock, meter: WriteMeter) -> None:
    meter.read("t", 100)
    meter.read("t", 20)
    assert meter.read_rate_of("t") == 0.0
    watch.now += 60
    assert (meter.read_rate_of("t"), meter.read_rate_of("other")) == (2.0, 0.0)
    watch.now += 60
    assert meter.read_rate_of("t") == 0.0


def test_entries_of_several_logs_add_up() -> None:
    total, other = WrittenEntries(), WrittenEntries()
    for each in (total, other):
        each.waits_ms.add(0.7)
        each.sizes.add(600, 2)
    total.merge(other)
    assert (total.waits_ms.counts[1], total.waits_ms.sum) == (2, pytest.approx(1.4))
    assert (total.sizes.counts[2], total.sizes.sum) == (4, 2400)
