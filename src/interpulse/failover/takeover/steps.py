"""Steps of a takeover, in order."""

from __future__ import annotations

from interpulse.failover.lease import Lease
from interpulse.failover.operation import Step
from interpulse.failover.steps.lease_held import LeaseHeld
from interpulse.failover.steps.promote import Promote
from interpulse.failover.takeover.at_stake import AtStakeShown
from interpulse.failover.takeover.close_way import CloseWay
from interpulse.failover.takeover.last_steps import MoveLostClients, Subscriptions, TakeoverReport
from interpulse.failover.takeover.site_lost import SiteLost
from interpulse.failover.takeover.takeover import Confirm, Takeover


def takeover_steps(takeover: Takeover, lease: Lease, confirm: Confirm) -> list[Step]:
    """Return the steps of a takeover. It can be taken back until `Promote` acts."""
    return [
        LeaseHeld(lease),
        SiteLost(takeover),
        AtStakeShown(takeover, confirm),
        CloseWay(takeover),
        Subscriptions(),
        Promote(takeover),
        MoveLostClients(takeover),
        TakeoverReport(takeover),
    ]
