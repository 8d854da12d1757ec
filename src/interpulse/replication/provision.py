"""Make sure that a topic and its schemas exist on the cluster they are replicated to (PIP-433).

Both clusters are asked without creating anything, the shared rule compares, and what is missing is created through the
remote cluster's admin API: an explicit creation, so its auto-creation policies play no part. What cannot be made equal
without a decision of an operator is held: `TopicHeld` says why and what would end it, and the caller tries again later.
"""

from __future__ import annotations

from typing import Any

from interpulse.client.admin import AdminClient
from interpulse.client.admin_schemas import SchemaVersion
from interpulse.model.errors import (
    Conflict,
    IncompatibleSchema,
    NamespaceNotFound,
    PulsarError,
    SchemaNotFound,
    TopicNotFound,
)
from interpulse.model.names import TopicName
from interpulse.model.topics import Existence, TopicKind
from interpulse.rules.provisioning import Provisioning, ProvisioningStep, plan_topic

__all__ = ["TopicHeld", "TopicProvisioner", "topic_shape"]

_ATTEMPTS_MAX = 5
"""A creation can lose against somebody else's a few times; losing more often means that the two sides fight."""


class TopicHeld(PulsarError):
    """Replication of one topic has to wait; nothing is lost meanwhile, it stays in the source's backlog."""

    retriable = True

    def __init__(self, topic: str, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.topic = topic
        self.reason = reason
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.topic, self.reason, self.remedy)


class TopicProvisioner:
    """Provisions topics of one pair of clusters.

    ``creation_allowed`` is ``createTopicToRemoteClusterForReplication``. With ``expansion_allowed`` a remote topic with
    too few partitions grows; otherwise a difference holds the topic, and neither side is ever changed.
    """

    def __init__(
        self,
        source: AdminClient,
        target: AdminClient,
        *,
        creation_allowed: bool = True,
        expansion_allowed: bool = False,
    ) -> None:
        self._source = source
        self._target = target
        self._creation_allowed = creation_allowed
        self._expansion_allowed = expansion_allowed

    async def ensure_topic(self, topic: TopicName, *, equal_before: int | None = None) -> int:
        """The partition count that both clusters have for the base of ``topic`` now; 0 = not partitioned.

        ``equal_before`` is the count both had when this was last asked: a source that has grown since then takes the
        remote topic along. Raises TopicHeld, or what the clusters answer when they cannot be asked.
        """
        base = topic.base
        refusal: Conflict | None = None
        for _ in range(_ATTEMPTS_MAX):
            local = await topic_shape(self._source, base)
            remote = await self._remote_shape(base)
            plan = plan_topic(base, local, remote, may_create=self._creation_allowed)
            if plan.step is ProvisioningStep.CONNECT:
                return plan.partitions
            try:
                await self._apply(base, plan, local, remote, equal_before)
            except Conflict as error:  # somebody else was faster, or something stands in the way: look again
                refusal = error
        raise TopicHeld(
            str(base),
            f"{base} cannot be created on the remote cluster: {refusal or 'it vanishes again'}",
            "remove there what stands in the way",
        )

    async def ensure_schemas(self, topic: TopicName) -> dict[int, int]:
        """Register all schemas of the topic remotely, oldest first, and return source version -> remote version.

        Raises TopicHeld if the remote cluster refuses one: later versions are then not tried, so that their order is
        kept.
        """
        versions = {}
        for entry in await self._schema_history(topic):
            try:
                versions[entry.version] = await self._target.schemas.upload(topic.base, entry.schema)
            except IncompatibleSchema as error:
                raise TopicHeld(
                    str(topic.base),
                    f"the remote cluster refuses version {entry.version} of the schema of {topic.base}: {error}",
                    "relax the schema compatibility strategy there, or delete the schema that stands in the way",
                ) from error
        return versions

    async def _schema_history(self, topic: TopicName) -> list[SchemaVersion]:
        try:
            return await self._source.schemas.history(topic.base)
        except SchemaNotFound:
            return []

    async def _remote_shape(self, base: TopicName) -> Existence:
        try:
            return await topic_shape(self._target, base)
        except NamespaceNotFound as error:
            namespace = base.namespace_name
            raise TopicHeld(
                str(base), f"namespace {namespace} does not exist on the remote cluster", f"create {namespace} there"
            ) from error

    async def _apply(
        self, base: TopicName, plan: Provisioning, local: Existence, remote: Existence, equal_before: int | None
    ) -> None:
        topics = self._target.topics
        if plan.step is ProvisioningStep.CREATE_PLAIN:
            await topics.create(base)
        elif plan.step is ProvisioningStep.CREATE_PARTITIONED:
            await topics.create_partitioned(base, plan.partitions, local_only=True)
        elif self._may_expand(local, remote, equal_before):
            await topics.expand(base, local.partitions, local_only=True)
        else:
            raise TopicHeld(str(base), plan.reason, plan.remedy)

    def _may_expand(self, local: Existence, remote: Existence, equal_before: int | None) -> bool:
        both_partitioned = local.kind is remote.kind is TopicKind.PARTITIONED
        wanted = self._expansion_allowed or remote.partitions == equal_before
        return both_partitioned and wanted and remote.partitions < local.partitions


async def topic_shape(admin: AdminClient, base: TopicName) -> Existence:
    """What a cluster says about a name, without creating it. Raises NamespaceNotFound."""
    try:
        metadata = await admin.topics.partitioned_metadata(base)
    except TopicNotFound:
        return Existence(TopicKind.ABSENT)
    if metadata.partitions == 0:
        return Existence(TopicKind.NON_PARTITIONED)
    return Existence(TopicKind.PARTITIONED, metadata.partitions)
