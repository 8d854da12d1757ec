"""Seeded faults of a pair during `failover switch`, under clients whose history is judged.

Each seed is a plan: a site that is killed or suspended, a direction that is not copied, or a kill of the command, at
one moment of one step. The fault ends by itself, and the same command is given again until it has ended.
`FAILOVER_SEED` plays one plan of your choice.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from interpulse.failover import commands
from interpulse.failover.commands import initialise, switch
from interpulse.failover.history.events import Cause
from interpulse.failover.history.judging import judge
from interpulse.failover.history.reading import read_log
from interpulse.failover.journal import Journal, Operation
from interpulse.failover.operation import Evidence, Step
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.pair import opened_pair
from interpulse.failover.steps import switch_steps
from interpulse.model.errors import PulsarError
from interpulse.model.ids import Position
from tests.support.recorded_pair import NAMESPACE, SITES, TOPIC, Play, playing

log = logging.getLogger(__name__)

STEPS: Final = (
    "lease",
    "preflight",
    "ways open",
    "fence",
    "drain",
    "settle",
    "promote",
    "move clients",
    "stand by",
    "report",
)
WITH_ACTS: Final = ("fence", "promote", "move clients", "stand by", "report")
FAULTS: Final = ("killed", "suspended", "not copied", "command killed")
GOES_ON: Final = (Outcome.BROKEN_OFF, Outcome.TAKEN_BACK, Outcome.UNREACHABLE)
"""Outcomes after which the same command is given again."""
SECONDS_MAX: Final = 1.5
ATTEMPTS_MAX: Final = 10

FAST, SLOW = range(1), range(1, 21)
SEEDS = [int(os.environ["FAILOVER_SEED"])] if "FAILOVER_SEED" in os.environ else FAST


@dataclass(frozen=True)
class Plan:
    """Fault of one run. ``site`` is where it is, or what is not copied from."""

    seed: int
    fault: str
    site: str
    step: str
    moment: str
    seconds: float

    @classmethod
    def of(cls, seed: int) -> Plan:
        """Return the plan of a seed. Consecutive seeds have all faults."""
        chance = random.Random(seed)
        step = chance.choice(STEPS)
        moment = chance.choice(("before", "after", "act") if step in WITH_ACTS else ("before", "after"))
        seconds = round(chance.uniform(0.1, SECONDS_MAX), 2)
        return cls(seed, FAULTS[seed % len(FAULTS)], chance.choice(SITES), step, moment, seconds)


class Killed(BaseException):
    """End of the process of the command."""


class Faults:
    """Fault of a plan, once."""

    def __init__(self, play: Play, plan: Plan) -> None:
        self._play = play
        self._plan = plan
        self._ending: asyncio.Task[None] | None = None
        self.is_seen = False

    async def come(self) -> None:
        """Let the fault begin, and end after its time."""
        if self.is_seen:
            return
        self.is_seen = True
        pair, site = self._play.pair, self._plan.site
        if self._plan.fault == "command killed":
            raise Killed
        begin, end = {
            "killed": (pair.lose, pair.return_),
            "suspended": (pair.suspend, pair.resume),
            "not copied": (pair.stop_copying, pair.start_copying),
        }[self._plan.fault]
        await asyncio.to_thread(begin, site)

        async def end_later() -> None:
            await asyncio.sleep(self._plan.seconds)
            await asyncio.to_thread(end, site)

        self._ending = asyncio.create_task(end_later())

    async def end(self) -> None:
        """Return when the fault is over."""
        if self._ending is not None:
            await self._ending


class FaultyStep:
    """Step at which the fault of the plan comes. The end of a fence is recorded."""

    def __init__(self, play: Play, step: Step, plan: Plan, faults: Faults) -> None:
        self._play = play
        self._step = step
        self._moment = plan.moment if plan.step == step.name else None
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._step, name)

    async def holds(self) -> Evidence | None:
        if self._moment == "before":
            await self._faults.come()
        evidence = await self._step.holds()
        if self._moment == "after" and evidence is not None:
            await self._faults.come()
        return evidence

    async def act(self) -> None:
        await self._step.act()
        if self._moment == "act":
            await self._faults.come()

    async def revert(self) -> None:
        if self._step.name == "fence":
            log = await read_log(self._play.clients["east"].client, "east", TOPIC)
            self._play.recorder.release("east", {TOPIC: log.messages[-1].position})
        await self._step.revert()


class Recording:
    """Progress of a switch, whose fence and promotion are recorded."""

    def __init__(self, play: Play, state: Path) -> None:
        self._play = play
        self._state = state

    def begins(self, operation: Operation) -> None:
        self._operation = operation

    def holds(self, number: int, step: Step, seconds: float, evidence: Evidence) -> None:
        recorder, epoch = self._play.recorder, self._operation.epoch
        if step.name == "fence":
            path = self._state / "operations" / f"{self._operation.id}.fence.jsonl"
            rows = map(json.loads, path.read_text().splitlines())
            recorder.fence("east", {row["topic"]: Position.parse(row["position"]) for row in rows})
        elif step.name == "promote" and self._play.active == "east":
            self._play.active = "west"
            recorder.promote("west", Cause.SWITCH)
            recorder.see_role("west", NAMESPACE, "active", epoch)


@pytest.fixture
async def play(tmp_path: Path) -> AsyncIterator[Play]:
    async with playing(tmp_path) as started:
        yield started


@pytest.mark.parametrize("seed", SEEDS)
async def test_switch_when_a_fault_comes_then_its_history_is_clean(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    await judged_switch(play, tmp_path / "state", monkeypatch, Plan.of(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SLOW)
async def test_switch_when_one_of_many_faults_comes_then_its_history_is_clean(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    await judged_switch(play, tmp_path / "state", monkeypatch, Plan.of(seed))


async def judged_switch(play: Play, state: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan) -> None:
    """Switch while clients work and the fault of the plan comes, and judge what they saw."""
    log.info("plan %s", plan)  # shown if the test fails
    faults = Faults(play, plan)

    def steps(*arguments: Any, **options: Any) -> Sequence[Any]:
        return [FaultyStep(play, step, plan, faults) for step in switch_steps(*arguments, **options)]

    monkeypatch.setattr(commands, "switch_steps", steps)
    async with opened_pair(play.file(state)) as sites:
        await initialise(sites)
    play.recorder.see_role("east", NAMESPACE, "active", 1)
    await play.begin()
    await play.until_sent(30)
    confirming = asyncio.create_task(confirm_what_answers(play))
    outcomes = await switched(play, state, faults)
    confirming.cancel()
    await play.until_sent(30)
    await play.end()
    assert faults.is_seen, plan
    assert judge(await play.history()) == [], (plan, outcomes)
    paths = [path for path in (state / "operations").glob("*.jsonl") if path.name.count(".") == 1]
    ended = sorted(str(Journal(path).outcome) for path in paths)
    assert [outcome for outcome in ended if outcome != Outcome.TAKEN_BACK.name] == [Outcome.DONE.name], (plan, ended)


async def switched(play: Play, state: Path, faults: Faults) -> list[str]:
    """Give the same command until it has ended. Return the outcomes."""
    outcomes: list[str] = []
    while len(outcomes) < ATTEMPTS_MAX:
        try:
            async with opened_pair(play.file(state)) as sites:
                result = await switch(sites, "west", Recording(play, state))
        except Killed:
            outcomes.append("KILLED")
        except OperationFailed as failed:
            if failed.outcome not in GOES_ON:
                raise
            outcomes.append(f"{failed.outcome.name}: {failed}")
        else:
            await faults.end()
            return [*outcomes, result.outcome.name]
        await faults.end()
    raise AssertionError(f"the switch has not ended: {outcomes}")


async def confirm_what_answers(play: Play) -> None:
    """Confirm acknowledgements at the origin until cancelled, whenever it answers."""
    while True:
        with suppress(PulsarError):
            await play.consumer.confirm("east", play.clients["east"].admin)
        await asyncio.sleep(0.02)
