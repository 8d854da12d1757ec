"""A site of ours, whose brokers know the role of each namespace.

Source: docs/reference/administration.md#failover-roles
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from interpulse.failover.site import OURS, REPLICATING, Fence, SiteAccess, SubscriptionLook
from interpulse.in_turns import concurrently
from interpulse.model.ids import Position
from interpulse.model.names import NamespaceName
from interpulse.rules.failover_role import FailoverRole, Role, stored_role

_SYNCED: Final = "SYNCED"


class OurSite:
    """A cluster of ours; see `Site`."""

    kind = OURS

    def __init__(self, access: SiteAccess) -> None:
        self.access = access

    async def roles(self) -> dict[NamespaceName, FailoverRole]:
        """Return the stored role of each namespace with its epoch.

        The role in force may differ for a moment: a broker that was started fences until its peer has answered.
        """
        pages = await concurrently(self.access.admin.namespaces.properties, self.access.namespaces)
        return {name: stored_role(page)[0] for name, page in zip(self.access.namespaces, pages, strict=True)}

    async def closed_ways(self, cluster: str) -> dict[str, str]:
        """Return the topic-partitions that are not replicated to a cluster, by the status that its job reports."""
        records = await self._records(cluster)
        unreported = {"state": "no job reports it", "remedy": "see interpulse-admin namespaces replication-status"}
        found = {str(topic): records.get(str(topic), unreported) for topic in await self.access.topics()}
        return {topic: _sentence(record) for topic, record in found.items() if record["state"] != REPLICATING}

    async def pending_ways(self, cluster: str) -> dict[str, str]:
        """Return the topic-partitions whose subscriptions are not in the state SYNCED, or have something pending."""
        return {
            topic: f"{record['subscriptionState']}, {record['subscriptionPending'] or 0} pending"
            + (f", {record['subscriptionReason']}" if record["subscriptionReason"] else "")
            for topic, record in (await self._records(cluster)).items()
            if record["subscriptionState"] not in (None, _SYNCED) or record["subscriptionPending"]
        }

    async def behind(self, cluster: str) -> int | None:
        """Return the estimate of the job for all topic-partitions."""
        lags = [record["lagMessages"] for record in (await self._records(cluster)).values()]
        return sum(lags) if lags and None not in lags else None

    async def _records(self, cluster: str) -> dict[str, Mapping[str, Any]]:
        """Return the replication status of topic-partitions towards a cluster."""
        pages = await concurrently(self.access.admin.namespaces.replication_status, self.access.namespaces)
        return {record["topic"]: record for page in pages for record in page if record["cluster"] == cluster}

    async def look_at_subscriptions(self, before: SubscriptionLook | None) -> SubscriptionLook:
        """Return the subscriptions that are marked as replicated, by the change counters of the brokers."""
        subscriptions = set() if before is None else set(before.subscriptions)
        marks: dict[NamespaceName, str] = {}
        is_changed = False
        for namespace in self.access.namespaces:
            token, is_last = None if before is None else before.marks[namespace], False
            while not is_last:
                page = await self.access.admin.namespaces.acknowledgements(namespace, since=token)
                token, is_last = page["token"], not page["more"]
                is_changed |= bool(page["subscriptions"])
                for item in page["subscriptions"]:
                    change = subscriptions.discard if item.get("deleted") else subscriptions.add
                    change((item["topic"], item["subscription"]))
            marks[namespace] = str(token)
        return SubscriptionLook(is_changed, frozenset(subscriptions), marks)

    async def fence(self) -> Fence:
        """Set the role fenced, under the epoch that each namespace has, in all namespaces at the same time.

        The epoch stays, so that the fence can be taken back: a lower one is refused. Namespaces that do not serve are
        left alone.
        """
        answers = await self._change_role(Role.FENCED, of=(Role.ACTIVE, Role.FENCED))
        positions = {
            topic: Position.parse(text) for answer in answers for topic, text in answer.get("positions", {}).items()
        }
        return Fence(positions, sum(answer["closedProducers"] for answer in answers))

    async def renewed_fence(self) -> Fence | None:
        """Return nothing: brokers hold the fence, and it has no gaps."""
        return None

    async def release(self) -> None:
        """Set the role of fenced namespaces active, under the epoch that each has."""
        await self._change_role(Role.ACTIVE, of=(Role.FENCED,))

    async def promote(self, epoch: int) -> None:
        """Set the role active. A way that is closed stays closed."""
        roles = await self.roles()
        await self._store({name: FailoverRole(Role.ACTIVE, epoch, closed_to=roles[name].closed_to) for name in roles})

    async def redirect(self, epoch: int, url: str) -> None:
        """Set the role moved: connected clients are redirected, and new ones too. Subscriptions are ready there."""
        await self._set(Role.MOVED, epoch, url=url, subscriptions_ready=True)

    async def standby(self, epoch: int) -> None:
        """Set the role standby."""
        await self._set(Role.STANDBY, epoch)

    async def close_way(self, cluster: str) -> None:
        """Refuse copies from a cluster, whatever the roles are. On return everything that arrived is stored."""
        await self._store({name: replace(role, closed_to=cluster) for name, role in (await self.roles()).items()})

    async def open_way(self, *, hold_s: int = 0) -> None:
        """Take copies from every cluster. For ``hold_s`` consumers of replicated subscriptions are closed and refused.

        The hold is in force before the first copy can come.
        """
        await self._store({name: replace(role, closed_to="") for name, role in (await self.roles()).items()}, hold_s)

    async def serve_consumers(self) -> None:
        """End the hold of `open_way`."""
        await self._store(await self.roles())

    async def close(self) -> None:
        """End nothing: the brokers hold the fence."""

    async def _set(self, role: Role, epoch: int, **fields: Any) -> None:
        admin = self.access.admin.namespaces
        await concurrently(
            lambda namespace: admin.set_failover_role(namespace, role, epoch, **fields), self.access.namespaces
        )

    async def _store(self, roles: Mapping[NamespaceName, FailoverRole], hold_s: int = 0) -> None:
        """Set roles with all their fields but a hold of consumers, which is of ``hold_s`` from now on."""
        admin = self.access.admin.namespaces

        async def store(name: NamespaceName) -> None:
            role = roles[name]
            await admin.set_failover_role(
                name,
                role.role,
                role.epoch,
                url=role.service_url or None,
                url_tls=role.service_url_tls or None,
                subscriptions_ready=role.subscriptions_ready,
                closed_to=role.closed_to or None,
                hold_consumers_for=hold_s or None,
            )

        await concurrently(store, roles)

    async def _change_role(self, role: Role, *, of: Collection[Role]) -> list[dict[str, Any]]:
        """Set the role of the namespaces that have one of these roles. Their epochs stay."""
        admin = self.access.admin.namespaces
        epochs = {name: each.epoch for name, each in (await self.roles()).items() if each.role in of}
        return await concurrently(lambda name: admin.set_failover_role(name, role, epochs[name]), epochs)


def _sentence(record: Mapping[str, Any]) -> str:
    parts = [str(record[name]) for name in ("state", "reason", "remedy") if record.get(name)]
    return ", ".join(parts)
