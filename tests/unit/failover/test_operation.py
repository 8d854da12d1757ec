"""The engine of an operation, killed at every line of its journal and at every act."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpulse.failover.journal import Journal, Operation
from interpulse.failover.operation import Engine, Evidence, Step
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.model.errors import Conflict, NotConnected

OPERATION = Operation("20261130T210000-ab12cd", "switch", "west", 5, "2026-11-30T21:00:00.000Z", "anna")
NAMES = ("lease", "fence", "drain", "promote", "report")


class Killed(BaseException):
    """End of the process."""


@dataclass
class World:
    """Clusters that outlive the process, and the moments at which it is killed, counted from 0."""

    kill_at: int = -1
    moments: int = 0
    done: set[str] = field(default_factory=set)
    acts: list[str] = field(default_factory=list)
    reverts: list[str] = field(default_factory=list)
    records: list[Mapping[str, Any]] = field(default_factory=list)
    now: float = 0.0

    def moment(self) -> None:
        self.moments += 1
        if self.moments - 1 == self.kill_at:
            raise Killed

    async def record(self, body: Mapping[str, Any]) -> None:
        self.moment()
        self.records.append(body)
        self.moment()


class Scripted:
    """A step of that world."""

    limit_s = 10.0

    def __init__(self, world: World, name: str, *, overdue: Outcome | None = Outcome.TAKEN_BACK) -> None:
        self.name = self.shown = name
        self.overdue = overdue
        self._world = world
        self.failures: list[Exception] = []
        self.revert_failures: list[Exception] = []
        self.never_holds = False

    async def holds(self) -> Evidence | None:
        self._world.moment()
        is_done = self.name in self._world.done and not self.never_holds
        return Evidence(f"{self.name} holds") if is_done else None

    async def act(self) -> None:
        self._world.moment()
        if self.failures:
            raise self.failures.pop()
        self._world.acts.append(self.name)
        self._world.done.add(self.name)
        self._world.moment()

    async def revert(self) -> None:
        self._world.moment()
        if self.revert_failures:
            raise self.revert_failures.pop()
        self._world.reverts.append(self.name)
        self._world.done.discard(self.name)

    def waits_for(self) -> Sequence[str]:
        return (f"{self.name} is late",)


class Shown:
    """Progress that is kept."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def begins(self, operation: Operation) -> None:
        raise AssertionError("the engine does not begin an operation")

    def holds(self, number: int, step: Step, seconds: float, evidence: Evidence) -> None:
        self.numbers.append(number)


class KilledJournal(Journal):
    """A journal whose process may be killed before and after each line."""

    world: World

    def _append(self, line: dict[str, Any]) -> None:
        self.world.moment()
        super()._append(line)
        self.world.moment()


def engine_of(world: World, directory: Path) -> Engine:
    path = directory / "operations" / f"{OPERATION.id}.jsonl"
    if not path.exists():
        Journal.create(directory, OPERATION)
    journal = KilledJournal(path)
    journal.world = world

    def seconds() -> float:
        world.now += 1
        return world.now

    return Engine(journal, world, seconds=seconds, iso_now=lambda: "t", progress=Shown(), pause_s=0)


async def run(world: World, directory: Path, steps: Sequence[Scripted]) -> Engine:
    engine = engine_of(world, directory)
    await engine.run(steps)
    return engine


async def test_steps_when_none_was_done_then_act_in_order_under_the_lease(tmp_path: Path) -> None:
    world = World()
    await run(world, tmp_path, [Scripted(world, name) for name in NAMES])
    assert world.acts == list(NAMES)
    assert [record.get("step") for record in world.records] == [*NAMES, None]
    assert world.records[-1]["outcome"] == "DONE"
    assert Journal.unfinished(tmp_path) is None


async def moments_of_a_run() -> int:
    world = World()
    with tempfile.TemporaryDirectory() as directory:
        await run(world, Path(directory), [Scripted(world, name) for name in NAMES])
    return world.moments


@settings(max_examples=25, deadline=None)
@given(st.data())
async def test_steps_when_killed_anywhere_and_repeated_then_end_as_without_a_kill(data: st.DataObject) -> None:
    world = World()
    with tempfile.TemporaryDirectory() as name:
        directory, limit = Path(name), await moments_of_a_run()
        for _ in range(data.draw(st.integers(1, 3), label="kills")):
            world.kill_at = world.moments + data.draw(st.integers(0, limit), label="kill after so many moments")
            try:
                await run(world, directory, [Scripted(world, name) for name in NAMES])
            except Killed:
                continue
        world.kill_at = -1
        if Journal.unfinished(directory) is not None:
            await run(world, directory, [Scripted(world, name) for name in NAMES])
        assert world.done == set(NAMES)
        assert sorted(set(world.acts), key=world.acts.index) == list(NAMES)
        journal = Journal(directory / "operations" / f"{OPERATION.id}.jsonl")
        assert journal.outcome == "DONE"
        assert all(journal.evidence_of(step) is not None for step in NAMES)


async def test_every_moment_of_a_run_then_can_be_the_last_one(tmp_path: Path) -> None:
    for moment in range(await moments_of_a_run()):
        world, directory = World(kill_at=moment), tmp_path / str(moment)
        with pytest.raises(Killed):
            await run(world, directory, [Scripted(world, name) for name in NAMES])
        if Journal.unfinished(directory) is not None:
            await run(world, directory, [Scripted(world, name) for name in NAMES])
        assert world.done == set(NAMES)
        assert world.acts.count("promote") == 1


async def test_step_when_it_is_late_then_what_was_done_is_taken_back_in_reverse(tmp_path: Path) -> None:
    world = World()
    steps = [Scripted(world, name) for name in NAMES]
    steps[2].never_holds = True
    with pytest.raises(OperationFailed, match=r"drain was not reached in 10 s: drain is late") as caught:
        await run(world, tmp_path, steps)
    assert caught.value.outcome is Outcome.TAKEN_BACK
    assert world.reverts == ["drain", "fence", "lease"]
    assert world.records[-1]["outcome"] == "TAKEN_BACK"
    assert Journal.unfinished(tmp_path) is None


async def test_step_behind_the_promotion_when_it_is_late_then_nothing_is_taken_back(tmp_path: Path) -> None:
    world = World()
    steps = [Scripted(world, name, overdue=Outcome.BROKEN_OFF) for name in NAMES]
    steps[3].never_holds = True
    with pytest.raises(OperationFailed) as caught:
        await run(world, tmp_path, steps)
    assert (caught.value.outcome, world.reverts) == (Outcome.BROKEN_OFF, [])
    assert Journal.unfinished(tmp_path) is not None


async def test_step_when_it_may_be_late_then_is_a_warning(tmp_path: Path) -> None:
    world = World()
    steps = [Scripted(world, name, overdue=None) for name in NAMES]
    steps[4].never_holds = True
    engine = await run(world, tmp_path, steps)
    assert engine.warnings == ["report was not reached in 10 s: report is late"]


async def test_step_when_a_cluster_is_away_for_a_while_then_is_tried_again(tmp_path: Path) -> None:
    world = World()
    steps = [Scripted(world, name) for name in NAMES]
    steps[1].failures = [NotConnected("away"), NotConnected("away")]
    await run(world, tmp_path, steps)
    assert world.acts == list(NAMES)


async def test_step_when_a_cluster_refuses_for_good_then_is_taken_back(tmp_path: Path) -> None:
    world = World()
    steps = [Scripted(world, name) for name in NAMES]
    steps[1].failures = [Conflict("The namespace has epoch 9")]
    with pytest.raises(OperationFailed, match="fence is refused: The namespace has epoch 9") as caught:
        await run(world, tmp_path, steps)
    assert (caught.value.outcome, world.reverts) == (Outcome.TAKEN_BACK, ["fence", "lease"])


async def test_lease_when_it_is_lost_then_nothing_more_is_done(tmp_path: Path) -> None:
    world = World()
    steps = [Scripted(world, name) for name in NAMES]

    async def lost(body: Mapping[str, Any]) -> None:
        if body.get("step") == "drain":
            raise OperationFailed("The lease is lost", Outcome.BROKEN_OFF)

    world.record = lost  # type: ignore[method-assign]
    with pytest.raises(OperationFailed) as caught:
        await run(world, tmp_path, steps)
    assert caught.value.outcome is Outcome.BROKEN_OFF
    assert (world.acts, world.reverts) == (["lease", "fence"], [])


def late_steps(world: World, failures: Sequence[Exception]) -> list[Scripted]:
    """Steps of which the second is late, and the first cannot be taken back for some attempts."""
    steps = [Scripted(world, name) for name in ("fence", "drain")]
    steps[1].never_holds = True
    steps[0].revert_failures = [*failures]
    return steps


async def test_take_back_when_a_site_is_away_for_a_moment_then_is_repeated(tmp_path: Path) -> None:
    world = World()
    with pytest.raises(OperationFailed) as caught:
        await run(world, tmp_path, late_steps(world, [NotConnected("east is away")] * 3))
    assert (caught.value.outcome, world.reverts) == (Outcome.TAKEN_BACK, ["drain", "fence"])
    assert [record.get("step") for record in world.records].count("revert fence") == 1


@pytest.mark.parametrize(
    ("failures", "left"), [([NotConnected("east is away")] * 100, 60), ([Conflict("epoch 6")] * 2, 1)]
)
async def test_take_back_when_a_site_stays_away_or_refuses_then_undo_is_named(
    tmp_path: Path, failures: list[Exception], left: int
) -> None:
    world = World()
    steps = late_steps(world, failures)
    with pytest.raises(OperationFailed, match=r"fence could not be taken back: .*\. undo tries again") as caught:
        await run(world, tmp_path, steps)
    assert caught.value.outcome is Outcome.BROKEN_OFF
    assert len(steps[0].revert_failures) >= left
    assert Journal.unfinished(tmp_path) is not None


@pytest.mark.parametrize("is_recorded", [True, False])
async def test_step_that_refuses_when_a_cluster_cannot_be_asked_then_nothing_is_refused(
    tmp_path: Path, is_recorded: bool
) -> None:
    """Exit code 2 says that a cluster could not be asked, 3 that it was and the answer is no."""
    world = World()
    steps = [Scripted(world, "lease"), Scripted(world, "preflight", overdue=Outcome.REFUSED)]
    steps[1].failures = [NotConnected("west is away")] * 100

    async def lost(body: Mapping[str, Any]) -> None:
        if "outcome" in body:
            raise OperationFailed("The lease is lost", Outcome.BROKEN_OFF)

    if not is_recorded:
        world.record = lost  # type: ignore[method-assign]
    with pytest.raises(OperationFailed, match="west is away") as caught:
        await run(world, tmp_path, steps)
    assert (caught.value.outcome, world.reverts) == (Outcome.UNREACHABLE, [])
    assert Journal.unfinished(tmp_path) is None
