"""State that the steps of one takeover share: the site that serves from now on, the lost one, and what is at stake."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from interpulse.failover.journal import Journal, Operation
from interpulse.failover.our_site import OurSite
from interpulse.failover.pair_config import PairConfig
from interpulse.failover.reporting.reports import AtStake
from interpulse.failover.site import SiteAccess
from interpulse.failover.switch import serves, serves_any
from interpulse.failover.takeover.incidents import Incidents
from interpulse.failover.takeover.probing import Probing
from interpulse.model.ids import Position
from interpulse.model.names import TopicName


@dataclass(frozen=True)
class Known:
    """Knowledge about a lost site. Without a report it is only how far its topic-partitions are copied."""

    lost: str
    report: AtStake | None
    copied: Mapping[TopicName, Position]
    problem: str = ""
    """Reason why there is no report."""


Confirm = Callable[[Known], Awaitable[bool]]
"""Show what is at stake, and return True to go on."""


@dataclass
class Takeover:
    """One takeover of the clients of ``lost`` by ``target``. ``seconds`` is a monotonic clock."""

    config: PairConfig
    journal: Journal
    target: OurSite
    lost: SiteAccess
    probing: Probing
    seconds: Callable[[], float]
    promoted_at: float | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def operation(self) -> Operation:
        return self.journal.operation

    @property
    def client_url(self) -> str:
        """Address to which clients are sent."""
        return self.target.access.address.url_of_clients

    @property
    def incidents(self) -> Incidents:
        return Incidents(self.config.state)

    @property
    def before(self) -> dict[str, Any] | None:
        """Record of the incident; None so far."""
        return self.incidents.before(self.operation.epoch)

    async def is_promoted(self) -> bool:
        """Return True if the target serves every namespace under the epoch of this takeover, or a later one."""
        return serves(await self.target.roles(), self.operation.epoch)

    async def is_begun_to_promote(self) -> bool:
        """Return True if the target serves any namespace under the epoch of this takeover, or a later one."""
        return serves_any(await self.target.roles(), self.operation.epoch)

    def times(self) -> dict[str, Any]:
        """Return the times of the takeover (RFC 3339), None for those that are not known."""
        report = (self.before or {}).get("report") or {}
        steps = {"detected": "lost", "confirmed": "at stake", "promoted": "promote"}
        found = {name: self.journal.done_at(step) for name, step in steps.items()}
        return {"reported": report.get("reportedAtTime"), **found}
