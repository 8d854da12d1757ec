"""Operation of the command ``takeover``: the other site is lost, and what it did not copy stays there for now."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack

from interpulse.clock import iso_time, now_ms
from interpulse.failover.journal import Journal
from interpulse.failover.lease import Lease
from interpulse.failover.operation import Progress
from interpulse.failover.our_site import OurSite
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.pair import TAKEOVER, Pair, holder, journal_of, opened_survivor
from interpulse.failover.pair_config import PairConfig
from interpulse.failover.running import Result, engine
from interpulse.failover.site import SiteAccess
from interpulse.failover.switch import serves_any
from interpulse.failover.takeover.incidents import refuse_open_incidents
from interpulse.failover.takeover.probing import Probing, probed
from interpulse.failover.takeover.steps import takeover_steps
from interpulse.failover.takeover.takeover import Confirm, Takeover


async def take_over(
    config: PairConfig,
    to: str,
    progress: Progress,
    confirm: Confirm,
    *,
    is_resumed: bool = False,
    even_if_alive: bool = False,
) -> Result:
    """Let a site serve in place of the other one, which is lost, or go on with such a takeover.

    Raise OperationFailed with its outcome: REFUSED, and nothing was changed, if the other site answers, unless
    ``even_if_alive``.
    """
    async with AsyncExitStack() as closing:
        lost = SiteAccess.of(config, config.other(to))
        closing.push_async_callback(lost.close)
        pair = await closing.enter_async_context(opened_survivor(config, to))
        target = _of_ours(pair, to)
        probing = await _probed(target, lost, config, even_if_alive=even_if_alive)
        refuse_open_incidents(config.state)
        lease = await closing.enter_async_context(Lease(config.control_topic, holder(), iso_time(now_ms())))
        await lease.acquire([target.access], f"takeover-by-{to}")
        journal = await journal_of(pair, TAKEOVER, to, is_resumed=is_resumed)
        state = Takeover(config, journal, target, lost, probing, time.monotonic)
        progress.begins(journal.operation)
        running = engine(journal, lease, progress)
        await running.run(takeover_steps(state, lease, confirm))
        warnings = (*state.warnings, *running.warnings)
        outcome = Outcome.NOTICED if warnings else Outcome.DONE
        return Result(outcome, journal.operation, warnings=warnings, times=state.times())


def _of_ours(pair: Pair, to: str) -> OurSite:
    site = pair.site(to)
    if not isinstance(site, OurSite):
        raise OperationFailed(
            f"{to} is a cluster of Apache Pulsar, which cannot refuse copies from the lost site: takeover promotes "
            "clusters of Interpulse only. Move the clients by hand",
            Outcome.REFUSED,
        )
    return site


async def _probed(target: OurSite, lost: SiteAccess, config: PairConfig, *, even_if_alive: bool) -> Probing:
    """Probe the site that is said to be lost. Raise OperationFailed if it answers, and this was not accepted.

    A takeover that has promoted its target goes on even so.
    """
    probing = await probed(lost, config.limits)
    if not probing.answered or even_if_alive:
        return probing
    journal = Journal.unfinished(config.state)
    if journal is not None and journal.operation.kind == TAKEOVER and journal.operation.to == target.access.name:
        if serves_any(await target.roles(), journal.operation.epoch):
            return probing
        raise OperationFailed(
            f"{lost.name} answers again ({probing.answered}): take the takeover back with undo, or go on with "
            "--even-if-alive",
            Outcome.REFUSED,
        )
    raise OperationFailed(
        f"{lost.name} answers ({probing.answered}), so nothing need be lost: use switch --to {target.access.name}. "
        "Nothing was changed; --even-if-alive takes over all the same",
        Outcome.REFUSED,
    )
