"""Step 8 of a switch: clients are sent to the target, and the origin serves no producer of its own."""

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
    """The ways of ``[clients] move``. A program that was run and not noted is run again.

    The origin redirects, or stands by if redirects are no way: clients that are left there must not publish.
    """

    name = "move clients"
    overdue = Outcome.BROKEN_OFF

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._moves = switch.config.clients
        self._is_hook_done = switch.journal.evidence_of(self.name) is not None

    async def holds(self) -> Evidence | None:
        """Return the ways; None while one of them is not done."""
        moves = self._moves
        if not await self._is_left():
            return None
        if moves.file is not None and not is_written(moves.file, self._switch.client_url):
            return None
        if HOOK in moves.move and not self._is_hook_done:
            return None
        return Evidence(", ".join(moves.move) or "nothing to do", {"move": list(moves.move)})

    async def _is_left(self) -> bool:
        """Return True if the origin has the role in which it serves no producer, under the epoch of this switch."""
        wanted = Role.MOVED if REDIRECT in self._moves.move else Role.STANDBY
        roles = (await self._switch.origin.roles()).values()
        return all(role.role is wanted and role.epoch >= self._switch.operation.epoch for role in roles)

    async def act(self) -> None:
        """Redirect clients, write the file, run the program.

        A real site is let go of in place of the redirect, when its clients know the other one.
        """
        switch = self._switch
        if switch.origin.kind == OURS:
            await self._leave()
        await self._name_the_target()
        if switch.origin.kind != OURS:
            await self._leave()

    async def _leave(self) -> None:
        origin, epoch = self._switch.origin, self._switch.operation.epoch
        if REDIRECT in self._moves.move:
            await origin.redirect(epoch, self._switch.client_url)
        else:
            await origin.standby(epoch)

    async def _name_the_target(self) -> None:
        switch, moves = self._switch, self._moves
        operation, origin = switch.operation, switch.origin.access.name
        direction = Direction(origin, operation.to, switch.client_url, switch.config.name, operation.epoch)
        await name_target(moves, direction, hook_s=switch.config.limits.hook_s)
        self._is_hook_done = True
