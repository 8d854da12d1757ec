"""Step 1 of a switch: both leases are held."""

from __future__ import annotations

from interpulse.failover.lease import Lease
from interpulse.failover.operation import Evidence
from interpulse.failover.outcome import Outcome
from interpulse.failover.steps.plain_step import PlainStep


class LeaseHeld(PlainStep):
    """The lease, which the command took before it read the state of the pair."""

    name = "lease"
    overdue = Outcome.REFUSED

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    async def holds(self) -> Evidence | None:
        """Return the sites of the lease."""
        return Evidence(", ".join(self._lease.sites), {"sites": list(self._lease.sites)})
