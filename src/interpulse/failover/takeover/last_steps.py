"""Steps 5, 7 and 8 of a takeover: subscriptions, clients, and the report."""

from __future__ import annotations

from dataclasses import asdict

from interpulse.failover.moves import Direction, is_written, name_target
from interpulse.failover.operation import Evidence
from interpulse.failover.outcome import Outcome
from interpulse.failover.pair_config import FILE, HOOK
from interpulse.failover.steps.plain_step import PlainStep
from interpulse.failover.takeover.takeover import Takeover


class Subscriptions(PlainStep):
    """Acknowledgements of copies. A broker of ours applies what it gets before it answers, so nothing is left to do."""

    name = "subscriptions"

    async def holds(self) -> Evidence | None:
        """Return that nothing is pending at the target."""
        return Evidence("what arrived is applied; what a job still has goes on when both sites answer")


class MoveLostClients(PlainStep):
    """The ways ``file`` and ``hook``: a lost site redirects no one."""

    name = "move clients"
    overdue = Outcome.BROKEN_OFF

    def __init__(self, takeover: Takeover) -> None:
        self._takeover = takeover
        self._is_hook_done = takeover.journal.evidence_of(self.name) is not None

    async def holds(self) -> Evidence | None:
        """Return the ways; None while one of them is not done."""
        moves = self._takeover.config.clients
        if moves.file is not None and not is_written(moves.file, self._takeover.client_url):
            return None
        if HOOK in moves.move and not self._is_hook_done:
            return None
        ways = [way for way in moves.move if way in (FILE, HOOK)]
        return Evidence(", ".join(ways) or "clients have to change over by themselves", {"move": ways})

    async def act(self) -> None:
        """Write the file, run the program."""
        takeover = self._takeover
        operation, config = takeover.operation, takeover.config
        names = (takeover.lost.name, operation.to, takeover.client_url, config.name)
        await name_target(config.clients, Direction(*names, operation.epoch), hook_s=config.limits.hook_s)
        self._is_hook_done = True


class TakeoverReport(PlainStep):
    """The times of the takeover beside its journal.

    The way stays closed until `reconcile` has listed what the lost site still has.
    """

    name = "report"
    overdue = Outcome.BROKEN_OFF

    def __init__(self, takeover: Takeover) -> None:
        self._takeover = takeover
        self._is_written = False

    async def holds(self) -> Evidence | None:
        """Return the directory of the incident; None until this run has written the report."""
        takeover = self._takeover
        if not self._is_written:
            return None
        directory = takeover.incidents.directory(takeover.operation.epoch)
        return Evidence(f"{directory}; reconcile when {takeover.lost.name} is back", takeover.times())

    async def act(self) -> None:
        """Write the report."""
        takeover = self._takeover
        row = {**asdict(takeover.operation), **takeover.times(), "warnings": takeover.warnings}
        takeover.journal.write_evidence(self.name, [row])
        self._is_written = True
