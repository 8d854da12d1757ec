"""Step 6 of a switch: the subscriptions of both sites are the same."""

from __future__ import annotations

from collections.abc import Sequence

from interpulse.failover.operation import Evidence
from interpulse.failover.site import SubscriptionLook
from interpulse.failover.steps.drain import Drain
from interpulse.failover.steps.plain_step import PlainStep, some
from interpulse.failover.switch import Switch


class Settle(PlainStep):
    """Acknowledgements, which are exchanged while consumers are still at the origin.

    It holds when none was new for ``settle_s`` and none is pending. Consumers that go on acknowledging delay it up to
    ``settle_max_s``: what they do then is repeated at the target at worst.
    """

    name = "settle"

    def __init__(self, switch: Switch, drain: Drain) -> None:
        """``drain`` is looked at again: the fence of a real site may have had a gap meanwhile."""
        self._switch = switch
        self._drain = drain
        self._limits = switch.config.limits
        self.limit_s = 2 * self._limits.settle_max_s
        self._begin: float | None = None
        self._quiet_since = 0.0
        self._looks: dict[str, SubscriptionLook] = {}
        self._pending: dict[str, str] = {}

    async def holds(self) -> Evidence | None:
        """Return the number of subscriptions; None while acknowledgements are on their way."""
        switch = self._switch
        if await switch.is_begun_to_promote():
            return Evidence("was done before")
        if await self._drain.holds() is None:
            return None
        now = switch.seconds()
        if await self._is_changed() or self._begin is None:
            self._begin = now if self._begin is None else self._begin
            self._quiet_since = now
        count = max(look.count for look in self._looks.values())
        if not count:
            return Evidence("no subscription is carried")
        self._pending = await switch.origin.pending_ways(switch.target.access.cluster)
        self._pending |= await switch.target.pending_ways(switch.origin.access.cluster)
        is_late = now - self._begin >= self._limits.settle_max_s
        is_quiet = now - self._quiet_since >= self._limits.settle_s and not self._pending
        return self._evidence(count, is_late=is_late) if is_quiet or is_late else None

    def _evidence(self, count: int, *, is_late: bool) -> Evidence | None:
        held = {topic: reason for topic, reason in self._pending.items() if not reason.startswith("BEHIND")}
        if held:
            self._pending = held
            return None
        if is_late:
            self._switch.warnings.append(
                f"Consumers still acknowledged after {self._limits.settle_max_s} s; "
                "what they acknowledge at the end may be repeated"
            )
        return Evidence(f"{count} subscriptions, {len(self._pending)} pending", {"subscriptions": count})

    async def _is_changed(self) -> bool:
        """Look at both sites. Return True if either has a new acknowledgement since the last look."""
        is_changed = False
        for site in (self._switch.origin, self._switch.target):
            before = self._looks.get(site.access.name)
            self._looks[site.access.name] = look = await site.look_at_subscriptions(before)
            is_changed |= look.is_changed
        return is_changed

    def waits_for(self) -> Sequence[str]:
        """Return the topic-partitions with acknowledgements that are not exchanged."""
        return self._drain.waits_for() or some(
            [f"{topic}: {reason}" for topic, reason in sorted(self._pending.items())]
        )
