"""Engine and result of the operations of a command."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from interpulse.clock import iso_time, now_ms
from interpulse.failover.journal import Journal, Operation
from interpulse.failover.lease import Lease
from interpulse.failover.operation import Engine, Progress
from interpulse.failover.outcome import Outcome


@dataclass(frozen=True)
class Result:
    """End of an operation. ``outage_s`` is the time for which producers had no site, None if it is not known."""

    outcome: Outcome
    operation: Operation | None = None
    outage_s: float | None = None
    warnings: Sequence[str] = field(default=())
    times: Mapping[str, str | None] = field(default_factory=dict)
    """Times of a takeover (RFC 3339): ``reported``, ``detected``, ``confirmed`` and ``promoted``."""
    incident: Mapping[str, Any] | None = None
    """Record with which a reconcile has closed an incident."""


def engine(journal: Journal, lease: Lease, progress: Progress) -> Engine:
    """Return the engine of an operation, with the clocks of this machine."""
    return Engine(journal, lease, seconds=time.monotonic, iso_now=lambda: iso_time(now_ms()), progress=progress)
