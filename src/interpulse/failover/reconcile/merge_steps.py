"""Steps 5 to 8 of a reconcile: the way is opened, the tail and its acknowledgements arrive, consumers are served.

The copy of a message that a consumer had acknowledged before the loss must not be delivered. Its position is not known
before it is stored, so no acknowledgement can come first. Consumers of replicated subscriptions are held meanwhile.
Source: docs/reference/failover.md#reconcile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final

from interpulse.failover.operation import Evidence
from interpulse.failover.outcome import Outcome
from interpulse.failover.reconcile.arrivals import Arrivals
from interpulse.failover.reconcile.carried import count_missing
from interpulse.failover.reconcile.reconcile import Reconcile
from interpulse.failover.site import OURS
from interpulse.failover.steps.plain_step import PlainStep, some
from interpulse.failover.tail.reading import copies_in, cursors_of, end_of
from interpulse.in_turns import concurrently
from interpulse.model.ids import Position
from interpulse.model.names import TopicName

_AT_ONCE: Final = 16


class TailAcknowledgements:
    """Acknowledgements of the tail by replicated subscriptions, looked for at the site that serves."""

    def __init__(self, reconcile: Reconcile) -> None:
        self._reconcile = reconcile
        self._copies: dict[str, dict[Position, Position]] = {}
        """Positions of copies by that of the original, of topic-partitions whose copies are all known."""
        self.missing: dict[str, int] = {}

    async def are_there(self) -> bool:
        """Return True if the copies of all acknowledged messages are acknowledged."""
        wanted, access = self._reconcile.wanted, self._reconcile.serving.access
        if not wanted:
            return True
        cursors = await cursors_of(access, {TopicName.parse(topic): None for topic in wanted})
        copies = await concurrently(partial(self._copies_of, self._reconcile.copies_after), wanted, limit=_AT_ONCE)
        counts = {
            topic: count_missing(wanted[topic], known, cursors.get(topic, {}))
            for topic, known in zip(wanted, copies, strict=True)
        }
        self.missing = {topic: count for topic, count in counts.items() if count}
        return not self.missing

    async def _copies_of(self, after: Mapping[str, Position], topic: str) -> dict[Position, Position]:
        if topic in self._copies:
            return self._copies[topic]
        access, name = self._reconcile.serving.access, TopicName.parse(topic)
        positions = {each.position for each in self._reconcile.wanted[topic]}
        end = await end_of(access, name)
        async with aclosing(copies_in(access, name, after[topic], end)) as copies:
            found = {source: entry.position async for source, entry in copies if source in positions}
        if len(found) == len(positions):
            self._copies[topic] = found
        return found


class OpenWay(PlainStep):
    """The way from the site that is back. If its consumers had acknowledged something of the tail, others are held."""

    name = "open way"
    overdue = Outcome.BROKEN_OFF

    def __init__(self, reconcile: Reconcile, acknowledgements: TailAcknowledgements) -> None:
        self._reconcile = reconcile
        self._acknowledgements = acknowledgements
        self._is_opened = False

    @property
    def shown(self) -> str:
        """Name for people."""
        return f"open {self._reconcile.lost.access.name} -> {self._reconcile.serving.access.name}"

    async def holds(self) -> Evidence | None:
        """Return how long consumers are held; None while the way is closed, or consumers could be too early."""
        reconcile = self._reconcile
        if any(role.closed_to for role in (await reconcile.serving.roles()).values()):
            return None
        if not self._is_opened:
            return Evidence("was done before") if await self._acknowledgements.are_there() else None
        if reconcile.held_until is None:
            return Evidence("consumers go on")
        return Evidence(f"consumers of {len(reconcile.wanted)} topic-partitions wait for acknowledgements")

    async def act(self) -> None:
        """Let the lost site go if it is fenced, hold consumers if need be, and take copies."""
        reconcile = self._reconcile
        if reconcile.lost.kind != OURS:
            await reconcile.lost.standby(reconcile.incident.epoch)
        hold_s = reconcile.config.limits.hold_s if reconcile.wanted else 0
        reconcile.held_until = reconcile.seconds() + hold_s if hold_s else None
        await reconcile.serving.open_way(hold_s=hold_s)
        self._is_opened = True

    async def revert(self) -> None:
        """Refuse copies, and serve consumers again."""
        await self._reconcile.serving.close_way(self._reconcile.lost.access.cluster)


class _WhileHeld(PlainStep):
    """A step that must not take longer than consumers are held."""

    def __init__(self, reconcile: Reconcile) -> None:
        self._reconcile = reconcile

    @property
    def limit_s(self) -> float:  # type: ignore[override]
        """Time until consumers are served, or that for draining."""
        until = self._reconcile.held_until
        if until is None:
            return self._reconcile.config.limits.drain_s
        return max(0.0, until - self._reconcile.seconds())


class TailCopied(_WhileHeld):
    """The tail is at the site that serves. What does not arrive in time is taken back: the way is closed again."""

    name = "copy"

    def __init__(self, reconcile: Reconcile) -> None:
        super().__init__(reconcile)
        self._arrivals: Arrivals | None = None

    async def holds(self) -> Evidence | None:
        """Return the number of topic-partitions; None while something is missing."""
        reconcile = self._reconcile
        if self._arrivals is None:
            self._arrivals = Arrivals(reconcile.lost, reconcile.serving, reconcile.ends, reconcile.after)
        if not await self._arrivals.are_complete():
            return None
        return Evidence(f"{len(reconcile.ends)} topic-partitions", {"topics": len(reconcile.ends)})

    def waits_for(self) -> Sequence[str]:
        """Return what has not arrived, and the remedy for a tail that takes longer."""
        waiting = () if self._arrivals is None else self._arrivals.waits_for()
        return [*waiting, "raise hold_s if the tail is long"] if self._reconcile.held_until is not None else waiting


class TailAcknowledged(_WhileHeld):
    """The acknowledgements of the tail are at the site that serves. Without them there is a warning."""

    name = "acknowledgements"
    overdue = None

    def __init__(self, reconcile: Reconcile, acknowledgements: TailAcknowledgements) -> None:
        super().__init__(reconcile)
        self._acknowledgements = acknowledgements

    async def holds(self) -> Evidence | None:
        """Return the number of acknowledged messages; None while an acknowledgement is missing."""
        if not await self._acknowledgements.are_there():
            return None
        count = sum(map(len, self._reconcile.wanted.values()))
        return Evidence(f"{count} messages of the tail", {"messages": count})

    def waits_for(self) -> Sequence[str]:
        """Return the topic-partitions whose messages may be delivered again."""
        missing = self._acknowledgements.missing
        return some(
            [
                f"{count} acknowledgements of {topic} are missing, they may come again"
                for topic, count in missing.items()
            ]
        )


class ServeConsumers(PlainStep):
    """Consumers are served again."""

    name = "serve consumers"
    overdue = Outcome.BROKEN_OFF

    def __init__(self, reconcile: Reconcile) -> None:
        self._reconcile = reconcile

    async def holds(self) -> Evidence | None:
        """Return that no role holds consumers."""
        roles = (await self._reconcile.serving.roles()).values()
        return None if any(role.consumers_from for role in roles) else Evidence("every subscription")

    async def act(self) -> None:
        """End the hold."""
        await self._reconcile.serving.serve_consumers()
