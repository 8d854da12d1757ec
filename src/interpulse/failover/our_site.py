"""A site of ours, whose brokers know the role of each namespace.

Source: docs/decisions/0034-roles-of-a-namespace.md
"""

from __future__ import annotations

from typing import Any

from interpulse.failover.site import OURS, Fence, SiteAccess
from interpulse.in_turns import concurrently
from interpulse.model.ids import Position
from interpulse.model.names import NamespaceName
from interpulse.rules.failover_role import FailoverRole, Role, parse_role


class OurSite:
    """A cluster of ours; see `Site`."""

    kind = OURS

    def __init__(self, access: SiteAccess) -> None:
        self.access = access

    async def roles(self) -> dict[NamespaceName, FailoverRole]:
        """Return the role of each namespace with its epoch."""
        admin = self.access.admin.namespaces
        shown = await concurrently(admin.failover_role, self.access.namespaces)
        return {name: parse_role(each["role"]) for name, each in zip(self.access.namespaces, shown, strict=True)}

    async def fence(self) -> Fence:
        """Set the role fenced, under the epoch that each namespace has, in all namespaces at the same time.

        The epoch stays, so that the fence can be taken back: a lower one is refused.
        """
        answers = await self._set_role_of_each(Role.FENCED)
        positions = {
            topic: Position.parse(text) for answer in answers for topic, text in answer.get("positions", {}).items()
        }
        return Fence(positions, sum(answer["closedProducers"] for answer in answers))

    async def release(self) -> None:
        """Set the role active under the epoch that each namespace has."""
        await self._set_role_of_each(Role.ACTIVE)

    async def promote(self, epoch: int) -> None:
        """Set the role active."""
        await self._set(Role.ACTIVE, epoch)

    async def redirect(self, epoch: int, url: str) -> None:
        """Set the role moved: connected clients are redirected, and new ones too. Subscriptions are ready there."""
        await self._set(Role.MOVED, epoch, url=url, subscriptions_ready=True)

    async def standby(self, epoch: int) -> None:
        """Set the role standby."""
        await self._set(Role.STANDBY, epoch)

    async def close(self) -> None:
        """Close the clients."""
        await self.access.close()

    async def _set(self, role: Role, epoch: int, **fields: Any) -> None:
        admin = self.access.admin.namespaces
        await concurrently(
            lambda namespace: admin.set_failover_role(namespace, role, epoch, **fields), self.access.namespaces
        )

    async def _set_role_of_each(self, role: Role) -> list[dict[str, Any]]:
        roles, admin = await self.roles(), self.access.admin.namespaces
        return await concurrently(
            lambda namespace: admin.set_failover_role(namespace, role, roles[namespace].epoch), self.access.namespaces
        )
