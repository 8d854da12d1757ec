"""Every operation on every file of the log fails once, in turn: nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
import errno
import logging
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpulse.model.errors import PersistenceError
from interpulse.storage.api import StorageFull
from tests.durability.scenario import Life
from tests.simulation.disk import SimulatedDisk
from tests.unit.storage.listeners import read_all


async def steps_of_a_life() -> int:
    disk = SimulatedDisk()
    life = Life(disk)
    await life.whole()
    assert life.failures == 0
    await life.check(disk.healthy(), "nothing failed")
    kinds = set(disk.steps)
    assert kinds >= {"create", "write", "sync", "unlink", "sync_directory"}, kinds
    return len(disk.steps)


@pytest.mark.parametrize("for_good", [False, True], ids=["once", "from-then-on"])
@pytest.mark.parametrize(
    "error_number",
    [pytest.param(errno.EIO, id="io-error"), pytest.param(errno.ENOSPC, id="no-space", marks=pytest.mark.slow)],
)
async def test_life_when_any_step_fails_then_acknowledged_entries_survive(error_number: int, for_good: bool) -> None:
    for number in range(await steps_of_a_life()):
        disk = SimulatedDisk(fail_at=number, error_number=error_number, for_good=for_good)
        life = Life(disk)
        await life.whole()
        context = (number, disk.steps[number])
        await life.check(disk.healthy(), context)


async def test_life_when_power_is_lost_at_any_step_then_acknowledged_entries_survive_and_no_error_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for number in range(await steps_of_a_life()):
        disk = SimulatedDisk(fail_at=number, for_good=True)
        life = Life(disk)
        await life.whole()
        caplog.clear()
        await life.check(disk.after_power_loss(random.Random(number)), (number, disk.steps[number]))
        errors = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
        assert errors == [], (number, disk.steps[number])


operations = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from("abc"), st.integers(1, 4), st.sampled_from([1, 60, 400])),
        st.tuples(st.sampled_from(["roll", "trim", "delete"]), st.sampled_from("abc")),
        st.tuples(st.just("restart")),
    ),
    max_size=25,
)


@settings(max_examples=40)
@given(operations, st.none() | st.integers(0, 80), st.booleans(), st.integers(0, 1000))
async def test_any_life_when_it_ends_in_power_loss_then_acknowledged_entries_survive(
    plan: list[tuple[object, ...]], fail_at: int | None, for_good: bool, seed: int
) -> None:
    disk = SimulatedDisk(fail_at=fail_at, for_good=for_good)
    life = Life(disk)
    for verb, *rest in plan:
        if verb == "restart":
            await life.close()
        elif verb == "publish":
            await life.publish(*rest)  # type: ignore[arg-type]
        elif rest[0] in life.truths:
            await life.attempt(getattr(life, str(verb)), str(rest[0]))
    await life.index_written()
    await life.check(disk.after_power_loss(random.Random(seed)), "power loss")
    await life.close()


async def test_publish_when_sync_failed_then_fenced_and_next_segment_is_used() -> None:
    disk = SimulatedDisk()
    life = Life(disk)
    await life.publish("a", 1)
    await life.publish("b", 1)
    log, listener = await life.log("a")
    await life.index_written()
    disk.fail_at = len(disk.steps) + 1  # the write goes well, its sync does not
    log.append(b"lost")
    with pytest.raises(PersistenceError):
        await listener.durable(log.last_appended)
    assert disk.steps[-1] == "sync"
    with pytest.raises(PersistenceError):
        log.append(b"refused")
    assert isinstance(listener.error, PersistenceError)
    segments = {path for path in disk.names_now if path.suffix == ".seg"}
    await life.publish("a", 2)
    await life.publish("b", 1)
    assert len({path for path in disk.names_now if path.suffix == ".seg"} - segments) == 1
    assert life.failures == 0, "log b had nothing in the group that failed"
    for name in "ab":
        log, _ = await life.log(name)
        life.truths[name].check(await read_all(log), name)
    await life.close()


async def test_publish_when_disk_is_full_then_typed_error_and_recovers_when_there_is_room() -> None:
    disk = SimulatedDisk(capacity=900)
    life = Life(disk)
    while life.failures < 5:
        await life.publish("a", 1, size=100)
    listener = life.logs["a"][1]
    assert isinstance(listener.error, StorageFull)
    assert "no room" in str(listener.error)
    acknowledged = len(life.truths["a"].acknowledged)
    assert 0 < acknowledged < len(life.truths["a"].appended)
    disk.capacity = None
    await life.publish("a", 3, size=100)
    assert life.failures == 5
    assert len(life.truths["a"].acknowledged) == acknowledged + 3
    await life.close()
    await life.check(disk.healthy(), "after a full disk")


async def test_append_when_many_in_one_turn_then_one_sync() -> None:
    disk = SimulatedDisk()
    life = Life(disk)
    names = ["a", "b", "c"]
    for name in names:
        await life.publish(name, 1)
    before = disk.count("sync")
    logs = [await life.log(name) for name in names]
    for number in range(300):
        for log, _ in logs:
            last = log.append(b"%d" % number)
    for _, listener in logs:
        await listener.durable(listener.last._replace(entry=300))
    assert last.entry == 300
    assert disk.count("sync") == before + 1
    await life.close()


async def test_append_when_a_group_is_on_its_way_then_the_next_group_takes_all_that_came() -> None:
    disk = SimulatedDisk()
    life = Life(disk)
    await life.publish("a", 1)
    log, listener = await life.log("a")
    before = disk.count("sync")
    log.append(b"first")
    await asyncio.sleep(0)  # it is on its way
    for number in range(50):
        log.append(b"%d" % number)
    await listener.durable(log.last_appended)
    assert disk.count("sync") - before == 2
    assert [last.entry for last in listener.calls[-2:]] == [1, 51]
    await life.close()
