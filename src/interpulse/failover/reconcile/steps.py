"""Steps of a reconcile, in order."""

from __future__ import annotations

from interpulse.failover.lease import Lease
from interpulse.failover.operation import Step
from interpulse.failover.reconcile.last_steps import CloseIncident, Compare
from interpulse.failover.reconcile.list_steps import ConfirmTail, HoldLost, ListTail
from interpulse.failover.reconcile.merge_steps import (
    OpenWay,
    ServeConsumers,
    TailAcknowledged,
    TailAcknowledgements,
    TailCopied,
)
from interpulse.failover.reconcile.reconcile import Confirm, Reconcile
from interpulse.failover.steps.lease_held import LeaseHeld


def reconcile_steps(reconcile: Reconcile, lease: Lease, confirm: Confirm) -> list[Step]:
    """Return the steps of a reconcile. Nothing is copied before `OpenWay` acts."""
    acknowledgements = TailAcknowledgements(reconcile)
    return [
        LeaseHeld(lease),
        HoldLost(reconcile),
        ListTail(reconcile),
        ConfirmTail(reconcile, confirm),
        OpenWay(reconcile, acknowledgements),
        TailCopied(reconcile),
        TailAcknowledged(reconcile, acknowledgements),
        ServeConsumers(reconcile),
        Compare(reconcile),
        CloseIncident(reconcile),
    ]
