"""State that the steps of one switch share: the two sites, the fence, and what was noticed on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from interpulse.failover.journal import Journal, Operation
from interpulse.failover.pair_config import PairConfig
from interpulse.failover.site import Fence, Site
from interpulse.model.names import NamespaceName
from interpulse.rules.failover_role import FailoverRole, Role

_UNFENCED: Final = frozenset({"lease", "preflight", "ways open"})
"""Steps before the fence, which change nothing."""


@dataclass
class Switch:
    """One switch from ``origin`` to ``target``. ``seconds`` is a monotonic clock."""

    config: PairConfig
    journal: Journal
    origin: Site
    target: Site
    seconds: Callable[[], float]
    fence: Fence | None = None
    fenced_at: float | None = None
    promoted_at: float | None = None
    warnings: list[str] = field(default_factory=list)
    accepted: frozenset[str] = frozenset()
    """Kinds of findings whose errors do not refuse the switch."""

    @property
    def operation(self) -> Operation:
        return self.journal.operation

    @property
    def client_url(self) -> str:
        """Address to which clients are sent."""
        return self.target.access.address.url_of_clients

    async def is_promoted(self) -> bool:
        """Return True if the target serves every namespace under the epoch of this switch, or a later one."""
        return serves(await self.target.roles(), self.operation.epoch)

    async def is_begun_to_promote(self) -> bool:
        """Return True if the target serves any namespace under the epoch of this switch, or a later one."""
        return serves_any(await self.target.roles(), self.operation.epoch)

    async def is_fenced(self) -> bool:
        """Return True if any namespace of the origin is fenced."""
        return any(role.role is Role.FENCED for role in (await self.origin.roles()).values())

    async def is_under_way(self) -> bool:
        """Return True if this switch has fenced the origin before, so that conditions of its begin hold no longer.

        A fence without an act of this switch is that of another one, or of an operator.
        """
        if self.journal.started_steps <= _UNFENCED:
            return False
        return await self.is_fenced() or await self.is_begun_to_promote()


def serves(roles: dict[NamespaceName, FailoverRole], epoch: int) -> bool:
    """Return True if every namespace is active under ``epoch`` or a later one."""
    return all(role.role is Role.ACTIVE and role.epoch >= epoch for role in roles.values())


def serves_any(roles: dict[NamespaceName, FailoverRole], epoch: int) -> bool:
    """Return True if any namespace is active under ``epoch`` or a later one."""
    return any(role.role is Role.ACTIVE and role.epoch >= epoch for role in roles.values())


def highest_epoch(*roles: dict[NamespaceName, FailoverRole]) -> int:
    """Return the highest epoch among roles of sites."""
    return max((role.epoch for each in roles for role in each.values()), default=0)
