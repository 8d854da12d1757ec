"""The engine of an operation: its steps in order, each of which can be repeated after a kill at any moment.

A step says with evidence that it holds, or acts until it does. So a step that was done and not noted is found done, and
one half done is done again. What a step can see it does not take from the journal. Before every act the lease is
proven.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol

from interpulse.failover.journal import Journal, Operation
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.model.errors import Conflict, PulsarError

log = logging.getLogger(__name__)

_PAUSE_S: Final = 0.2
_REVERT_S: Final = 30
"""Time for which taking back a step is tried."""
NO_LIMIT: Final = float("inf")


@dataclass(frozen=True)
class Evidence:
    """Proof that a step holds: a text for people, and values for the journal."""

    text: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the members that the journal and ``--progress json`` have."""
        return {"text": self.text, **self.values}


class Step(Protocol):
    """One step of an operation."""

    @property
    def name(self) -> str:
        """Name in the journal."""

    @property
    def shown(self) -> str:
        """Name for people, with the site."""

    @property
    def limit_s(self) -> float:
        """Time for which the step may take to hold."""

    @property
    def overdue(self) -> Outcome | None:
        """Outcome of an operation whose step does not hold in time; None: a warning, and the operation goes on."""

    async def holds(self) -> Evidence | None:
        """Return the evidence that the step is done; None if it is not."""

    async def act(self) -> None:
        """Do the step. It may have been done before, in part or wholly."""

    async def revert(self) -> None:
        """Take back what the step did. It may not have been done."""

    def waits_for(self) -> Sequence[str]:
        """Return sentences about what the step waits for."""


class Records(Protocol):
    """The lease, as far as the engine goes."""

    async def record(self, body: Mapping[str, Any]) -> None:
        """Store the state of the operation. Raise OperationFailed if the lease was lost."""


class Progress(Protocol):
    """Receiver of the progress of an operation."""

    def begins(self, operation: Operation) -> None:
        """Take the operation, before its first step."""

    def holds(self, number: int, step: Step, seconds: float, evidence: Evidence) -> None:
        """Take a step that holds, with its number from 1 and its seconds."""


Clock = Callable[[], float]


class Engine:
    """Steps of one operation, with its journal and its lease."""

    def __init__(
        self,
        journal: Journal,
        lease: Records,
        *,
        seconds: Clock,
        iso_now: Callable[[], str],
        progress: Progress,
        pause_s: float = _PAUSE_S,
    ) -> None:
        """``seconds`` is a monotonic clock, and ``pause_s`` the time between two looks at a step that is awaited."""
        self._journal = journal
        self._lease = lease
        self._seconds = seconds
        self._iso_now = iso_now
        self._progress = progress
        self._pause_s = pause_s
        self.warnings: list[str] = []

    async def run(self, steps: Sequence[Step]) -> None:
        """Do all steps. Raise OperationFailed with the outcome; a switch that did not get ready is taken back before.

        Errors of clusters are retried while the time limit of the step lasts.
        """
        for number, step in enumerate(steps):
            try:
                await self._do(number, step)
            except OperationFailed as failed:
                if failed.outcome is Outcome.TAKEN_BACK:
                    await self.take_back(steps[: number + 1])
                if failed.outcome in (Outcome.REFUSED, Outcome.UNREACHABLE):
                    await self._end_unchanged(failed.outcome)
                raise
        await self._end(Outcome.DONE)

    async def _end_unchanged(self, outcome: Outcome) -> None:
        """End an operation that has changed nothing. A site that cannot take the record learns it from the next one."""
        try:
            await self._end(outcome)
        except OperationFailed as error:
            log.warning("end of the operation is not recorded outcome=%s error=%s", outcome.name, error)

    async def take_back(self, steps: Sequence[Step]) -> None:
        """Revert steps, the last one first, and end the operation.

        Raise OperationFailed if a cluster refuses, or gives no answer for half a minute.
        """
        for step in reversed(steps):
            await self._revert(step, self._seconds() + _REVERT_S)
        await self._end(Outcome.TAKEN_BACK)

    async def _revert(self, step: Step, deadline: float) -> None:
        await self._note_begin(f"revert {step.name}")
        while True:
            try:
                return await step.revert()
            except PulsarError as error:
                if isinstance(error, Conflict) or self._seconds() >= deadline:
                    raise OperationFailed(
                        f"{step.shown} could not be taken back: {error}. undo tries again", Outcome.BROKEN_OFF
                    ) from error
            await asyncio.sleep(self._pause_s)

    async def _do(self, number: int, step: Step) -> None:
        begin = self._seconds()
        try:
            evidence = await step.holds()
        except PulsarError as error:
            log.debug("step cannot be seen yet step=%s error=%s", step.name, error)
            evidence = None
        if evidence is None:
            evidence = await self._reach(step, begin + step.limit_s)
        self._journal.done(step.name, self._iso_now(), evidence.to_json())
        self._progress.holds(number + 1, step, self._seconds() - begin, evidence)

    async def _reach(self, step: Step, deadline: float) -> Evidence:
        """Act, and wait until the step holds."""
        has_acted, problem = False, ""
        while True:
            try:
                if not has_acted:
                    await self._note_begin(step.name)
                    await step.act()
                    has_acted = True
                if (evidence := await step.holds()) is not None:
                    return evidence
                problem = ""
            except Conflict as error:
                raise OperationFailed(
                    f"{step.shown} is refused: {error}", step.overdue or Outcome.BROKEN_OFF
                ) from error
            except PulsarError as error:
                problem = str(error)
            if self._seconds() >= deadline:
                return self._overdue(step, problem)
            await asyncio.sleep(self._pause_s)

    def _overdue(self, step: Step, problem: str) -> Evidence:
        """Return the evidence of a step that may be late. Raise OperationFailed for the others."""
        reasons = [*([problem] if problem else []), *step.waits_for()]
        sentence = f"{step.shown} was not reached in {step.limit_s:g} s: {'; '.join(reasons) or 'no reason is known'}"
        if step.overdue is None:
            self.warnings.append(sentence)
            return Evidence(f"not seen in {step.limit_s:g} s", {"overdue": True})
        is_unasked = problem and step.overdue is Outcome.REFUSED
        raise OperationFailed(sentence, Outcome.UNREACHABLE if is_unasked else step.overdue)

    async def _note_begin(self, step: str) -> None:
        self._journal.begin(step, self._iso_now())
        await self._lease.record(self._state(step=step))

    async def _end(self, outcome: Outcome) -> None:
        self._journal.end(outcome.name, self._iso_now())
        await self._lease.record(self._state(outcome=outcome.name))

    def _state(self, **event: Any) -> dict[str, Any]:
        return {**asdict(self._journal.operation), **event, "at": self._iso_now()}
