"""The step that moves clients, against a site whose role the test sees."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from interpulse.failover.journal import Journal, Operation
from interpulse.failover.outcome import Outcome
from interpulse.failover.pair_config import ClientMoves
from interpulse.failover.site import OURS, REAL, Site
from interpulse.failover.steps.move_clients import MoveClients
from interpulse.failover.switch import Switch
from interpulse.model.names import NamespaceName
from interpulse.rules.failover_role import FailoverRole, Role
from tests.unit.failover.steps.test_drain import NAMESPACE, Access, ScriptedSite, config


@dataclass
class Origin:
    """A site that keeps the role that it is given."""

    kind: str = OURS
    access: Access = field(default_factory=lambda: Access("east", "east"))
    role: FailoverRole = field(default_factory=lambda: FailoverRole(Role.FENCED, 4))

    async def roles(self) -> dict[NamespaceName, FailoverRole]:
        return {NAMESPACE: self.role}

    async def redirect(self, epoch: int, url: str) -> None:
        self.role = FailoverRole(Role.MOVED, epoch, url)

    async def standby(self, epoch: int) -> None:
        self.role = FailoverRole(Role.STANDBY, epoch)


def step_of(directory: Path, operation: Operation, origin: Origin, *move: str) -> MoveClients:
    file = str(directory / "url.json") if "file" in move else None
    west = ScriptedSite(Access("west", "west"), Role.ACTIVE)
    west.access.address = config(directory).addresses["west"]  # type: ignore[attr-defined]
    moves = replace(config(directory), clients=ClientMoves(move=move, file=file))
    journal = Journal.create(directory, operation)
    return MoveClients(Switch(moves, journal, cast(Site, origin), cast(Site, west), lambda: 0.0))


@pytest.mark.parametrize("kind", [OURS, REAL])
@pytest.mark.parametrize(("move", "role"), [(("redirect",), Role.MOVED), (("file",), Role.STANDBY), ((), Role.STANDBY)])
async def test_origin_when_clients_are_moved_then_takes_no_producer(
    tmp_path: Path, operation: Operation, kind: str, move: tuple[str, ...], role: Role
) -> None:
    origin = Origin(kind)
    step = step_of(tmp_path, operation, origin, *move)
    assert await step.holds() is None
    await step.act()
    assert (origin.role.role, origin.role.epoch) == (role, operation.epoch)
    assert await step.holds() is not None


@pytest.mark.parametrize("role", [Role.ACTIVE, Role.FENCED])
async def test_origin_when_it_does_not_stand_by_then_the_switch_is_broken_off(
    tmp_path: Path, operation: Operation, role: Role
) -> None:
    """A warning would leave clients behind that publish there."""
    origin = Origin()
    step = step_of(tmp_path, operation, origin, "file")
    await step.act()
    origin.role = FailoverRole(role, operation.epoch)
    assert await step.holds() is None
    assert step.overdue is Outcome.BROKEN_OFF
