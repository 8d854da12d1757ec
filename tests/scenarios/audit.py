"""A namespace of two clusters that differs in every way that an audit can be shown with admin calls."""

from __future__ import annotations

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.names import NamespaceName
from interpulse.model.policies.policy_records import RetentionPolicies


async def differ(source_url: str, target_url: str, namespace: NamespaceName) -> list[tuple[str, str | None]]:
    """Make it on both clusters; the kinds of the differences with their topics, sorted."""
    async with AdminClient(source_url) as here, AdminClient(target_url) as there:
        for admin in (here, there):
            await admin.namespaces.create(namespace)
            await admin.topics.create_partitioned(f"{namespace}/equal", 2)
            await admin.topics.create(f"{namespace}/plain")
        await here.namespaces.set_message_ttl(namespace, 60)
        await here.namespaces.set_deduplication(namespace, True)
        await here.namespaces.set_retention(namespace, RetentionPolicies(time_minutes=5, size_mb=6))
        await here.topics.create_partitioned(f"{namespace}/missing", 3)
        await here.topics.create(f"{namespace}/missing-plain")
        await here.topics.create_partitioned(f"{namespace}/small", 4)
        await there.topics.create_partitioned(f"{namespace}/small", 2)
        await here.topics.create_partitioned(f"{namespace}/large", 2)
        await there.topics.create_partitioned(f"{namespace}/large", 4)
        await there.topics.create(f"{namespace}/theirs")
    names = {
        "TOPIC_MISSING": ("missing", "missing-plain"),
        "TOPIC_PARTITIONS": ("small",),
        "PARTITIONS_CANNOT_SHRINK": ("large",),
        "REMOTE_ONLY_TOPIC": ("theirs",),
    }
    topics: list[tuple[str, str | None]] = [
        (kind, f"persistent://{namespace}/{name}") for kind, each in names.items() for name in each
    ]
    policies: list[tuple[str, str | None]] = [(kind, None) for kind in ("DEDUPLICATION", "MESSAGE_TTL", "RETENTION")]
    return sorted([*topics, *policies], key=str)
