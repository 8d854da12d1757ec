"""State that the steps of one reconcile share, and its record in the directory of the incident."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interpulse.failover.journal import Journal, Operation, replace_file
from interpulse.failover.our_site import OurSite
from interpulse.failover.pair_config import PairConfig
from interpulse.failover.reconcile.carried import Wanted, wanted_of
from interpulse.failover.site import Site
from interpulse.failover.tail.incident import Incident
from interpulse.failover.tail.listing import MERGED, TAIL
from interpulse.failover.takeover.incidents import Incidents
from interpulse.model.ids import Position

Confirm = Callable[[Mapping[str, Any]], Awaitable[bool]]
"""Show the sums of a tail, and return True to merge it."""


@dataclass
class Reconcile:
    """One reconcile of ``lost``, which is back, with ``serving``. ``seconds`` is a monotonic clock."""

    config: PairConfig
    journal: Journal
    incident: Incident
    lost: Site
    serving: OurSite
    seconds: Callable[[], float]
    held_until: float | None = None
    """Time by ``seconds`` until which consumers are held; None if they are not."""
    warnings: list[str] = field(default_factory=list)
    _wanted: dict[str, list[Wanted]] | None = None

    @property
    def operation(self) -> Operation:
        return self.journal.operation

    @property
    def incidents(self) -> Incidents:
        return Incidents(self.config.state)

    @property
    def directory(self) -> Path:
        return self.incidents.directory(self.incident.epoch)

    @property
    def record(self) -> dict[str, Any] | None:
        """Record of the list: its operation, the ends of the lost site's logs, and the sums; None before."""
        path = self.directory / MERGED
        body: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        return body

    def write_record(self, body: Mapping[str, Any]) -> None:
        """Replace the record."""
        replace_file(self.directory / MERGED, json.dumps(body, ensure_ascii=False) + "\n")

    @property
    def is_listed(self) -> bool:
        """True if this reconcile wrote the list, or an earlier one whose merge was confirmed."""
        record = self.record
        return record is not None and (record["operation"] == self.operation.id or record["confirmed"])

    @property
    def ends(self) -> dict[str, Position]:
        """Last position of each topic-partition at the lost site when the tail was listed."""
        return self._positions("ends")

    @property
    def after(self) -> dict[str, Position]:
        """Positions at the lost site behind which tails begin."""
        return self._positions("after")

    @property
    def copies_after(self) -> dict[str, Position]:
        """Positions at the site that serves behind which copies of tails are, and what it took since its promotion."""
        return self._positions("copiesAfter")

    def _positions(self, member: str) -> dict[str, Position]:
        return {topic: Position.parse(text) for topic, text in (self.record or {member: {}})[member].items()}

    @property
    def wanted(self) -> dict[str, list[Wanted]]:
        """Messages of the tail that replicated subscriptions of the lost site have acknowledged, by topic-partition."""
        if self._wanted is None:
            record = self.record or {"replicated": []}
            with (self.directory / TAIL).open(encoding="utf-8") as file:
                self._wanted = wanted_of(map(json.loads, file), {(topic, name) for topic, name in record["replicated"]})
        return self._wanted
