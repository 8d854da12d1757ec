"""Operations of the commands ``reconcile`` and ``back``: a site that was lost answers again."""

from __future__ import annotations

import time
from collections.abc import Collection

from interpulse.clock import iso_time, now_ms
from interpulse.failover.commands import switch
from interpulse.failover.journal import Journal
from interpulse.failover.lease import Lease
from interpulse.failover.operation import Progress
from interpulse.failover.our_site import OurSite
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.pair import RECONCILE, SWITCH, Pair, holder, is_unfinished, journal_of
from interpulse.failover.pair_config import PairConfig
from interpulse.failover.reconcile.reconcile import Confirm, Reconcile
from interpulse.failover.reconcile.steps import reconcile_steps
from interpulse.failover.running import Result, engine
from interpulse.failover.switch import serves
from interpulse.failover.tail.incident import Incident, IncidentError
from interpulse.failover.takeover.incidents import Incidents


async def reconcile(pair: Pair, progress: Progress, confirm: Confirm, *, is_resumed: bool = False) -> Result:
    """Merge what only the lost site has, or go on with that. Raise OperationFailed with its outcome.

    REFUSED: there is no open incident, the site of the takeover does not serve, or the merge was not confirmed.
    TAKEN_BACK: the tail did not arrive in time, and the way is closed again.
    """
    incident = _incident(pair.config)
    serving, lost = await _serving(pair, incident), pair.site(incident.lost)
    async with Lease(pair.config.control_topic, holder(), iso_time(now_ms())) as lease:
        await lease.acquire([serving.access, lost.access], f"reconcile-at-{incident.to}")
        journal = await journal_of(pair, RECONCILE, incident.to, is_resumed=is_resumed)
        state = Reconcile(pair.config, journal, incident, lost, serving, time.monotonic)
        progress.begins(journal.operation)
        running = engine(journal, lease, progress)
        await running.run(reconcile_steps(state, lease, confirm))
        after = state.incidents.after(incident.epoch) or {}
        warnings = (*state.warnings, *running.warnings)
        is_noticed = warnings or after.get("lostPositions") or after.get("conflicts")
        outcome = Outcome.NOTICED if is_noticed else Outcome.DONE
        return Result(outcome, journal.operation, warnings=warnings, incident=after)


def _incident(config: PairConfig) -> Incident:
    """Return the incident that is open, or the one that the unfinished reconcile has just closed."""
    journal, incidents = Journal.unfinished(config.state), Incidents(config.state)
    epochs = incidents.open_epochs()
    if journal is not None and not epochs:
        epochs = incidents.closed_by(journal.operation.id)
    if not epochs:
        raise OperationFailed(
            f"{config.state / 'incidents'} has no open incident: only a takeover leaves one. On another machine copy "
            "that directory from the machine of the takeover",
            Outcome.REFUSED,
        )
    try:
        return Incident.load(incidents.directory(epochs[0]))
    except IncidentError as error:
        raise OperationFailed(str(error), Outcome.REFUSED) from error


async def _serving(pair: Pair, incident: Incident) -> OurSite:
    site = pair.site(incident.to)
    roles = await site.roles()
    if not isinstance(site, OurSite) or not serves(roles, incident.epoch):
        shown = ", ".join(f"{name} {role}" for name, role in roles.items())
        raise OperationFailed(
            f"{incident.to} does not serve under epoch {incident.epoch} or a later one ({shown}): finish the takeover, "
            "or look at interpulse failover status",
            Outcome.REFUSED,
        )
    return site


async def go_back(
    pair: Pair,
    progress: Progress,
    confirm: Confirm,
    *,
    is_resumed: bool = False,
    waits: bool = False,
    accepted: Collection[str] = (),
) -> tuple[Result | None, Result]:
    """Reconcile if an incident is open, then switch to the site that served before.

    Return both results. Raise OperationFailed with the outcome of the one that failed.
    """
    first = None
    if _is_reconcile_due(pair.config):
        first = await reconcile(pair, progress, confirm, is_resumed=is_resumed)
    to = await _origin(pair)
    return first, await switch(pair, to, progress, is_resumed=is_resumed, waits=waits, accepted=accepted)


def _is_reconcile_due(config: PairConfig) -> bool:
    journal = Journal.unfinished(config.state)
    is_begun = journal is not None and journal.operation.kind == RECONCILE
    return is_begun or bool(Incidents(config.state).open_epochs())


async def _origin(pair: Pair) -> str:
    """Return the site to go back to. Raise OperationFailed if the pair was never switched, or no site serves."""
    record = await pair.last_record()
    if is_unfinished(record) and record is not None and record["kind"] == SWITCH:
        return str(record["to"])
    serving = [name for name, site in pair.sites.items() if serves(await site.roles(), 0)]
    if record is None or len(serving) != 1:
        problem = "it was never switched" if record is None else f"{' and '.join(serving) or 'no site'} serves"
        raise OperationFailed(f"There is no way back for {pair.config.name}: {problem}", Outcome.REFUSED)
    return pair.config.other(serving[0])
