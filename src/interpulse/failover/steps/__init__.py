"""Steps of a switch, one file for each, in the order of `switch_steps`."""

from __future__ import annotations

from interpulse.failover.lease import Lease
from interpulse.failover.operation import Step
from interpulse.failover.steps.drain import Drain
from interpulse.failover.steps.fence_origin import FenceOrigin
from interpulse.failover.steps.lease_held import LeaseHeld
from interpulse.failover.steps.move_clients import MoveClients
from interpulse.failover.steps.preflight import Preflight
from interpulse.failover.steps.promote import Promote
from interpulse.failover.steps.report import Report
from interpulse.failover.steps.settle import Settle
from interpulse.failover.steps.stand_by import StandBy
from interpulse.failover.steps.ways_open import WaysOpen
from interpulse.failover.switch import Switch


def switch_steps(switch: Switch, lease: Lease, *, waits: bool = False) -> list[Step]:
    """Return the steps of a switch. With ``waits`` draining has no time limit.

    The switch can be taken back until `Promote` acts.
    """
    drain = Drain(switch, waits=waits)
    return [
        LeaseHeld(lease),
        Preflight(switch),
        WaysOpen(switch),
        FenceOrigin(switch),
        drain,
        Settle(switch, drain),
        Promote(switch),
        MoveClients(switch),
        StandBy(switch),
        Report(switch),
    ]
