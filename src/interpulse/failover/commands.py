"""Operations of the commands: ``init``, ``switch`` and ``undo``."""

from __future__ import annotations

import time
from collections.abc import Collection

from interpulse.clock import iso_time, now_ms
from interpulse.failover.journal import Journal
from interpulse.failover.lease import Lease
from interpulse.failover.operation import Progress, Step
from interpulse.failover.our_site import OurSite
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.pair import (
    RECONCILE,
    SWITCH,
    TAKEOVER,
    Pair,
    holder,
    is_unfinished,
    journal_of,
    unfinished_here,
)
from interpulse.failover.running import Result, engine
from interpulse.failover.steps import switch_steps
from interpulse.failover.steps.fence_origin import FenceOrigin
from interpulse.failover.steps.report import outage_s
from interpulse.failover.switch import Switch, highest_epoch
from interpulse.failover.takeover.close_way import CloseWay
from interpulse.failover.takeover.incidents import refuse_open_incidents
from interpulse.failover.takeover.probing import Probing
from interpulse.failover.takeover.takeover import Takeover
from interpulse.rules.failover_role import Role


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
    refuse_open_incidents(pair.config.state)
    async with Lease(pair.config.control_topic, holder(), iso_time(now_ms())) as lease:
        await lease.acquire([target.access, origin.access], f"switch-to-{to}")
        journal = await journal_of(pair, SWITCH, to, is_resumed=is_resumed)
        state = Switch(pair.config, journal, origin, target, time.monotonic, accepted=frozenset(accepted))
        progress.begins(journal.operation)
        running = engine(journal, lease, progress)
        await running.run(switch_steps(state, lease, waits=waits))
        warnings = (*state.warnings, *running.warnings)
        outcome = Outcome.NOTICED if warnings else Outcome.DONE
        return Result(outcome, journal.operation, outage_s(state), warnings)


async def undo(pair: Pair, progress: Progress) -> Result:
    """Take back a switch or a takeover that has not promoted its target. Both sites must answer.

    Raise OperationFailed if there is none, or it is too late.
    """
    first, second = (pair.site(name) for name in pair.config.sites)
    async with Lease(pair.config.control_topic, holder(), iso_time(now_ms())) as lease:
        await lease.acquire([second.access, first.access], "undo")
        record = await pair.last_record()
        journal = unfinished_here(pair, record)
        if journal is None and record is not None and is_unfinished(record):
            journal = Journal.taken_over(pair.config.state, record)
        if journal is None:
            raise OperationFailed(f"{pair.config.name} has no unfinished switch to take back", Outcome.REFUSED)
        to = journal.operation.to
        if journal.operation.kind == RECONCILE:
            raise OperationFailed(
                f"A reconcile adds messages to {to} and takes none away, so it is not taken back: give it again",
                Outcome.REFUSED,
            )
        state = Switch(pair.config, journal, pair.site(pair.config.other(to)), pair.site(to), time.monotonic)
        if await state.is_begun_to_promote():
            origin = state.origin.access.name
            raise OperationFailed(
                f"{to} serves under epoch {journal.operation.epoch}: it is too late for undo. Finish with "
                f"{journal.operation.kind} --to {to}, then go back with switch --to {origin}",
                Outcome.REFUSED,
            )
        steps: list[Step] = [FenceOrigin(state)]
        if journal.operation.kind == TAKEOVER and isinstance(state.target, OurSite):
            lost = state.origin.access
            steps.insert(0, CloseWay(Takeover(pair.config, journal, state.target, lost, Probing(0), time.monotonic)))
        await engine(journal, lease, progress).take_back(steps)
        return Result(Outcome.TAKEN_BACK, journal.operation)
