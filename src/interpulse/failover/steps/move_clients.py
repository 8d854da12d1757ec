"""Step 8 of a switch: clients are sent to the target."""

from __future__ import annotations

from interpulse.failover.moves import Direction, is_written, name_target
from interpulse.failover.operation import Evidence
from interpulse.failover.outcome import Outcome
from interpulse.failover.pair_config import HOOK, REDIRECT
from interpulse.failover.site import OURS
from interpulse.failover.steps.plain_step import PlainStep
from interpulse.failover.switch import Switch
from interpulse.rules.failover_role import Role


class MoveClients(PlainStep):
    """The ways of ``[clients] move``. A program that was run and not noted is run again."""

    name = "move clients"
    overdue = Outcome.BROKEN_OFF

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._moves = switch.config.clients
        self._is_hook_done = switch.journal.evidence_of(self.name) is not None

    async def holds(self) -> Evidence | None:
        """Return the ways; None while one of them is not done."""
        moves = self._moves
        if REDIRECT in moves.move and not await self._is_redirecting():
            return None
        if moves.file is not None and not is_written(moves.file, self._switch.client_url):
            return None
        if HOOK in moves.move and not self._is_hook_done:
            return None
        return Evidence(", ".join(moves.move) or "nothing to do", {"move": list(moves.move)})

    async def _is_redirecting(self) -> bool:
        """Return True if the origin redirects every client. A cluster that cannot has nothing to do."""
        roles = (await self._switch.origin.roles()).values()
        epoch = self._switch.operation.epoch
        return all(role.role is Role.MOVED and role.epoch >= epoch for role in roles)

    async def act(self) -> None:
        """Redirect clients, write the file, run the program.

        A real site is let go of in place of the redirect, when its clients know the other one.
        """
        switch = self._switch
        if switch.origin.kind == OURS:
            await self._redirect()
        await self._name_the_target()
        if switch.origin.kind != OURS:
            await self._redirect()

    async def _redirect(self) -> None:
        if REDIRECT in self._moves.move:
            await self._switch.origin.redirect(self._switch.operation.epoch, self._switch.client_url)

    async def _name_the_target(self) -> None:
        switch, moves = self._switch, self._moves
        operation, origin = switch.operation, switch.origin.access.name
        direction = Direction(origin, operation.to, switch.client_url, switch.config.name, operation.epoch)
        await name_target(moves, direction, hook_s=switch.config.limits.hook_s)
        self._is_hook_done = True
