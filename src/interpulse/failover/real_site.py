"""A site of Apache Pulsar, which has no roles: this command fences it, and a property of the namespace has its role.

The property has no effect there. It lets every machine see how far a switch is, as at a site of ours. Pulsar cannot
redirect clients without ending its topics, so they are moved by a file or a program; then the fence is released.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from interpulse.clock import iso_time, now_ms
from interpulse.failover.fence_holder import AutoCreation, FenceHolder, auto_creation, restore_auto_creation
from interpulse.failover.site import REAL, Fence, SiteAccess, SubscriptionLook
from interpulse.in_turns import concurrently
from interpulse.model.errors import Conflict
from interpulse.model.names import NamespaceName
from interpulse.model.policies.policy_records import AutoTopicCreation
from interpulse.rules.failover_role import ROLE_PROPERTY, FailoverRole, Role, make_role, parse_role

CREATION_PROPERTY: Final = "interpulse.failover.auto-creation"
"""Override for auto-creation from before the fence, as JSON, until the fence is released."""

_CURSOR_FIELDS: Final = ("markDeletePosition", "individuallyDeletedMessages")
_AT_ONCE: Final = 64


class RealSite:
    """A cluster of Apache Pulsar; see `Site`."""

    kind = REAL

    def __init__(self, access: SiteAccess, pair: str) -> None:
        self.access = access
        self._pair = pair
        self._holder: FenceHolder | None = None
        self._gap_count = 0

    async def roles(self) -> dict[NamespaceName, FailoverRole]:
        """Return the role that is recorded for each namespace."""
        pages = await concurrently(self.access.admin.namespaces.properties, self.access.namespaces)
        texts = {name: page.get(ROLE_PROPERTY) for name, page in zip(self.access.namespaces, pages, strict=True)}
        return {name: FailoverRole() if text is None else parse_role(text) for name, text in texts.items()}

    async def closed_ways(self, cluster: str) -> dict[str, str]:
        """Return the topic-partitions whose replicator to a cluster is absent or not connected."""
        shown = {str(topic): way for topic, way in (await self._ways(cluster)).items()}
        remedy = "see pulsar-admin topics stats, and the replication clusters of the namespace"
        return {
            topic: f"{'its replicator is not connected' if way else 'it has no replicator'}, {remedy}"
            for topic, way in shown.items()
            if not way.get("connected")
        }

    async def pending_ways(self, cluster: str) -> dict[str, str]:
        """Return nothing: brokers of Pulsar report no state of subscriptions that are carried."""
        return {}

    async def behind(self, cluster: str) -> int | None:
        """Return the backlog of the replicators."""
        return sum(int(way.get("replicationBacklog", 0)) for way in (await self._ways(cluster)).values())

    async def _ways(self, cluster: str) -> dict[Any, Mapping[str, Any]]:
        stats = await self.access.stats(await self.access.topics())
        return {topic: shown.get("replication", {}).get(cluster, {}) for topic, shown in stats.items()}

    async def look_at_subscriptions(self, before: SubscriptionLook | None) -> SubscriptionLook:
        """Return the replicated subscriptions, and compare their cursors with the last look."""
        stats = await self.access.stats(await self.access.topics())
        marked = {
            topic: sorted(name for name, each in shown["subscriptions"].items() if each.get("isReplicated"))
            for topic, shown in stats.items()
        }
        asked = [topic for topic, names in marked.items() if names]
        details = await concurrently(self.access.admin.topics.internal_stats, asked, limit=_AT_ONCE)
        cursors = [
            (str(topic), name, *map(shown["cursors"].get(name, {}).get, _CURSOR_FIELDS))
            for topic, shown in zip(asked, details, strict=True)
            for name in marked[topic]
        ]
        mark = hashlib.sha256(json.dumps(cursors).encode()).hexdigest()
        marks = dict.fromkeys(self.access.namespaces, mark)
        names = frozenset((topic, name) for topic, name, *_ in cursors)
        return SubscriptionLook(before is None or before.marks != marks, names, marks)

    async def fence(self) -> Fence:
        """Hold an exclusive producer on every topic-partition. Auto-creation is off until `release`."""
        roles = await self.roles()
        await self._record_auto_creation()
        await self._record(Role.FENCED, of=(Role.ACTIVE, Role.FENCED))
        closed = sum(len(shown.get("publishers", ())) for shown in (await self._stats_of_all()).values())
        if self._holder is None:
            holder = FenceHolder(self.access, self._pair, max(role.epoch for role in roles.values()))
            try:
                await holder.hold()
            except BaseException:  # the next attempt begins with a new one
                await holder.close()
                raise
            self._holder = holder
        return await self._read_fence(closed)

    async def _stats_of_all(self) -> Mapping[Any, Mapping[str, Any]]:
        return await self.access.stats(await self.access.topics()) if self._holder is None else {}

    async def renewed_fence(self) -> Fence | None:
        """Return the fence with positions that were read again, if it had a gap since; None if it held."""
        holder = self._holder
        if holder is None or (len(holder.gaps()) == self._gap_count and not holder.open_topics):
            return None
        return await self._read_fence(0)

    async def _read_fence(self, closed: int) -> Fence:
        assert self._holder is not None
        gaps = [gap for gap in self._holder.gaps() if gap.ended_ms is not None]
        self._gap_count = len(gaps)
        positions = await self._holder.positions()
        shown = {str(topic): place for topic, place in positions.items()}
        return Fence(shown, closed, tuple(map(str, gaps)), tuple(map(str, self._holder.open_topics)))

    async def release(self) -> None:
        """Let producers in, put auto-creation back, and record that fenced namespaces are active."""
        await self._end_fence()
        await self._record(Role.ACTIVE, of=(Role.FENCED,))

    async def promote(self, epoch: int) -> None:
        """Record that the site serves. Its brokers refuse no one."""
        await self._record(Role.ACTIVE, epoch)

    async def redirect(self, epoch: int, url: str) -> None:
        """Let go of the topics, and record where clients have gone. Clients that are still here may publish."""
        await self._end_fence()
        await self._record(Role.MOVED, epoch, url=url)

    async def standby(self, epoch: int) -> None:
        """Let go of the topics, and record that the site does not serve."""
        await self._end_fence()
        await self._record(Role.STANDBY, epoch)

    async def close(self) -> None:
        """End the fence. Auto-creation stays off until the switch goes on or is taken back."""
        if self._holder is not None:
            await self._holder.close()
            self._holder = None

    async def _end_fence(self) -> None:
        if self._holder is not None:
            await self._holder.close()
            self._holder = None
        admin = self.access.admin
        before = {name: await admin.namespaces.properties(name) for name in self.access.namespaces}
        noted = {name: page[CREATION_PROPERTY] for name, page in before.items() if CREATION_PROPERTY in page}
        await restore_auto_creation(admin, {name: _creation_of(text) for name, text in noted.items()})
        for name in noted:
            await admin.namespaces.remove_property(name, CREATION_PROPERTY)

    async def _record_auto_creation(self) -> None:
        """Record the overrides of namespaces, unless an earlier run did: then they are those of the fence."""
        admin = self.access.admin
        before: AutoCreation = await auto_creation(admin, self.access.namespaces)
        for name, policy in before.items():
            if CREATION_PROPERTY not in await admin.namespaces.properties(name):
                text = json.dumps(None if policy is None else policy.to_json())
                await admin.namespaces.update_properties(name, {CREATION_PROPERTY: text})

    async def _record(
        self, role: Role, epoch: int | None = None, *, url: str = "", of: Collection[Role] = tuple(Role)
    ) -> None:
        """Record a role, under the epoch that the namespace has unless there is another. Raise Conflict for a lower."""
        for name, present in (await self.roles()).items():
            if epoch is not None and epoch < present.epoch:
                raise Conflict(f"{name} has epoch {present.epoch} ({present}), so epoch {epoch} comes too late")
            if present.role in of:
                made = make_role(role, present.epoch if epoch is None else epoch, url=url)
                text = f"{made.stored()};since={iso_time(now_ms())}"
                await self.access.admin.namespaces.update_properties(name, {ROLE_PROPERTY: text})


def _creation_of(text: str) -> AutoTopicCreation | None:
    body = json.loads(text)
    return None if body is None else AutoTopicCreation.from_json(body)
