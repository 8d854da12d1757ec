"""Steps 2 to 4 of a reconcile: the site that is back takes nothing more, its tail is listed and confirmed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from interpulse.clock import iso_time, now_ms
from interpulse.failover.operation import Evidence
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.reconcile.reconcile import Confirm, Reconcile
from interpulse.failover.site import OURS
from interpulse.failover.steps.plain_step import PlainStep
from interpulse.failover.tail.incident import Incident, LastCopy
from interpulse.failover.tail.listing import list_tail
from interpulse.failover.tail.reading import end_of
from interpulse.failover.tail.sameness import Sameness
from interpulse.in_turns import concurrently
from interpulse.rules.failover_role import Role

_AT_ONCE: Final = 64


class HoldLost(PlainStep):
    """The site that is back stands by. A real one is fenced until its tail is listed."""

    name = "hold"
    overdue = Outcome.REFUSED

    def __init__(self, reconcile: Reconcile) -> None:
        self._reconcile = reconcile
        self.limit_s = reconcile.config.limits.fence_s
        self._is_fenced = False

    @property
    def shown(self) -> str:
        """Name for people."""
        return f"hold {self._reconcile.lost.access.name}"

    async def holds(self) -> Evidence | None:
        """Return the state of the site; None while its clients may publish."""
        reconcile = self._reconcile
        if reconcile.is_listed:
            return Evidence("was done before")
        if reconcile.lost.kind != OURS:
            return Evidence("fenced") if self._is_fenced else None
        roles = (await reconcile.lost.roles()).values()
        is_held = all(role.role is Role.STANDBY and role.epoch >= reconcile.incident.epoch for role in roles)
        return Evidence(f"stands by under epoch {reconcile.incident.epoch}") if is_held else None

    async def act(self) -> None:
        """Let the site stand by, under the epoch of the takeover."""
        reconcile = self._reconcile
        if reconcile.lost.kind == OURS:
            await reconcile.lost.standby(reconcile.incident.epoch)
        else:
            await reconcile.lost.fence()
            self._is_fenced = True


class ListTail(PlainStep):
    """The messages that only the site that is back has, and keys that both have taken since. Listed once."""

    name = "list"
    overdue = Outcome.BROKEN_OFF

    def __init__(self, reconcile: Reconcile) -> None:
        self._reconcile = reconcile

    async def holds(self) -> Evidence | None:
        """Return the sums; None until the list is complete."""
        record = self._reconcile.record
        if record is None or not self._reconcile.is_listed:
            return None
        text = f"{record['messages']} messages, {record['conflicts']} keys in conflict"
        lost = f"; LOST: {len(record['lost'])} topic-partitions" if record["lost"] else ""
        members = {name: record[name] for name in ("messages", "conflicts", "lost")}
        return Evidence(text + lost, members)

    async def act(self) -> None:
        """Write the list, and its record."""
        reconcile = self._reconcile
        lost, serving = reconcile.lost.access, reconcile.serving.access
        incident = await self._with_later_topics()
        summary = await list_tail(lost, serving, incident, reconcile.directory)
        names = [last.topic for last in incident.topics]
        ends = await concurrently(lambda name: end_of(lost, name), names, limit=_AT_ONCE)
        marked = await reconcile.lost.look_at_subscriptions(None)
        members = {name: summary[name] for name in ("messages", "bytes", "conflicts")}
        reconcile.write_record(
            {
                "operation": reconcile.operation.id,
                "at": iso_time(now_ms()),
                **members,
                "lost": summary["lostPositions"],
                "rebuilt": [each["topic"] for each in summary["topics"] if each["state"] == Sameness.REBUILT],
                "after": {each["topic"]: each["after"] for each in summary["topics"]},
                "copiesAfter": {each["topic"]: each["copiesAfter"] for each in summary["topics"]},
                "ends": {str(name): str(end) for name, end in zip(names, ends, strict=True)},
                "replicated": sorted(marked.subscriptions),
                "confirmed": False,
            }
        )

    async def _with_later_topics(self) -> Incident:
        """Return the incident with the topics that the takeover did not know."""
        incident = self._reconcile.incident
        known = {last.topic for last in incident.topics}
        later = [LastCopy(topic) for topic in await self._reconcile.lost.access.topics() if topic not in known]
        return replace(incident, topics=(*incident.topics, *later))


class ConfirmTail(PlainStep):
    """The decision to append the tail behind what the other site has taken."""

    name = "confirm"
    overdue = Outcome.BROKEN_OFF

    def __init__(self, reconcile: Reconcile, confirm: Confirm) -> None:
        self._reconcile = reconcile
        self._confirm = confirm

    async def holds(self) -> Evidence | None:
        """Return that the tail is to be appended; None until it was confirmed."""
        record = self._reconcile.record
        return Evidence("append") if record is not None and record["confirmed"] else None

    async def act(self) -> None:
        """Show the sums. Raise OperationFailed if the merge is not confirmed."""
        record = self._record()
        incident = self._reconcile.incident
        if not await self._confirm({**record, "lostSite": incident.lost, "to": incident.to}):
            raise OperationFailed(
                f"it was not confirmed: nothing was merged, and {self._reconcile.lost.access.name} stands by",
                Outcome.REFUSED,
            )
        self._reconcile.write_record({**record, "confirmed": True})

    def _record(self) -> dict[str, Any]:
        record = self._reconcile.record
        assert record is not None  # the step before wrote it
        return record
