"""Operations of the commands: ``init``, ``switch`` and ``undo``."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from interpulse.clock import iso_time, now_ms
from interpulse.failover.journal import Journal, Operation
from interpulse.failover.lease import Lease
from interpulse.failover.operation import Engine, Progress
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.pair import Pair, holder, is_unfinished, journal_of_switch, unfinished_here
from interpulse.failover.steps import switch_steps
from interpulse.failover.steps.fence_origin import FenceOrigin
from interpulse.failover.steps.report import outage_s
from interpulse.failover.switch import Switch, highest_epoch
from interpulse.rules.failover_role import Role


@dataclass(frozen=True)
class Result:
    """End of an operation. ``outage_s`` is the time for which producers had no site, None if it is not known."""

    outcome: Outcome
    operation: Operation | None = None
    outage_s: float | None = None
    warnings: Sequence[str] = field(default=())


async def initialise(pair: Pair) -> None:
    """Let the first site serve and the other one stand by, under epoch 1. Repeated, it changes nothing.

    Raise OperationFailed if the pair has other roles, and the errors of the sites.
    """
    first, second = (pair.site(name) for name in pair.config.sites)
    async with Lease(pair.config.control_topic, holder(), iso_time(now_ms())) as lease:
        await lease.acquire([second.access, first.access], "init")
        here, there = await first.roles(), await second.roles()
        if highest_epoch(here, there) > 1 or any(role.role is not Role.ACTIVE for role in here.values()):
            raise OperationFailed(
                f"{pair.config.name} has roles already: look at interpulse failover status", Outcome.REFUSED
            )
        await second.standby(1)
        await first.promote(1)


async def switch(
    pair: Pair,
    to: str,
    progress: Progress,
    *,
    is_resumed: bool = False,
    waits: bool = False,
    accepted: Collection[str] = (),
) -> Result:
    """Switch to a site, or go on with such a switch. Raise OperationFailed with its outcome.

    Errors of the preflight of the ``accepted`` kinds do not refuse it.
    """
    target, origin = pair.site(to), pair.site(pair.config.other(to))
    async with Lease(pair.config.control_topic, holder(), iso_time(now_ms())) as lease:
        await lease.acquire([target.access, origin.access], f"switch-to-{to}")
        journal = await journal_of_switch(pair, to, is_resumed=is_resumed)
        state = Switch(pair.config, journal, origin, target, time.monotonic, accepted=frozenset(accepted))
        progress.begins(journal.operation)
        engine = _engine(journal, lease, progress)
        await engine.run(switch_steps(state, lease, waits=waits))
        warnings = (*state.warnings, *engine.warnings)
        outcome = Outcome.NOTICED if warnings else Outcome.DONE
        return Result(outcome, journal.operation, outage_s(state), warnings)


async def undo(pair: Pair, progress: Progress) -> Result:
    """Take back a switch that has not promoted its target.

    Raise OperationFailed if there is none, or it is too late.
    """
    first, second = (pair.site(name) for name in pair.config.sites)
    async with Lease(pair.config.control_topic, holder(), iso_time(now_ms())) as lease:
        await lease.acquire([second.access, first.access], "undo")
        record = await pair.last_record()
        journal = unfinished_here(pair, record)
        if journal is None and record is not None and is_unfinished(record):
            journal = Journal.create(pair.config.state, Operation.from_json(record))
        if journal is None:
            raise OperationFailed(f"{pair.config.name} has no unfinished switch to take back", Outcome.REFUSED)
        to = journal.operation.to
        state = Switch(pair.config, journal, pair.site(pair.config.other(to)), pair.site(to), time.monotonic)
        if await state.is_begun_to_promote():
            origin = state.origin.access.name
            raise OperationFailed(
                f"{to} serves under epoch {journal.operation.epoch}: it is too late for undo. Finish with switch --to "
                f"{to}, then go back with switch --to {origin}",
                Outcome.REFUSED,
            )
        await _engine(journal, lease, progress).take_back([FenceOrigin(state)])
        return Result(Outcome.TAKEN_BACK, journal.operation)


def _engine(journal: Journal, lease: Lease, progress: Progress) -> Engine:
    return Engine(journal, lease, seconds=time.monotonic, iso_now=lambda: iso_time(now_ms()), progress=progress)
