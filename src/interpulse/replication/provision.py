"""Provisioning of topics and their schemas on the cluster they are replicated to (PIP-433).

Both clusters are read without creating anything, the shared rule compares them, and missing topics are created through
the remote cluster's admin API. The creation is explicit, so its auto-creation policies do not count. A topic that needs
a decision of an operator is held: `TopicHeld` has the reason and the remedy, and the caller tries again later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from interpulse.model.errors import (
    AlreadyExists,
    CertificateError,
    Conflict,
    IncompatibleSchema,
    NamespaceNotFound,
    NotConnected,
    OperationTimeout,
    PulsarError,
    RemoteClusterUnavailable,
    SchemaNotFound,
    TenantNotFound,
    TopicNotFound,
)
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.schemas import SchemaInfo
from interpulse.model.topics import Existence, TopicKind
from interpulse.replication.change_forms import hold_texts
from interpulse.rules.inventory import NamespaceState, as_override
from interpulse.rules.provisioning import ProvisioningStep, may_grow, plan_topic

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient
    from interpulse.client.admin.schemas import SchemaVersion

T = TypeVar("T")
AskPartitionMetadata = Callable[[TopicName], Awaitable[Existence]]
"""Function that returns the existence of a base name on one cluster, without creating it."""

_ATTEMPTS_MAX: Final = 5
"""Maximum number of creations that lose against another one. More mean that two writers conflict."""
_REFUSED: Final = (406, 409, 412, 422)
"""Statuses of a cluster that understood the request and refuses it, for a limit, a policy or the like."""


class TopicHeld(PulsarError):
    """Topic whose replication must wait. Nothing is lost: its messages remain in the source's backlog."""

    retriable = True

    def __init__(self, topic: str, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.topic = topic
        self.reason = reason
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.topic, self.reason, self.remedy)


class PartitionsDiffer(TopicHeld):
    """Topic that both clusters have, with different partition counts."""


class Provisioned(NamedTuple):
    """Partition count of both clusters, 0 = not partitioned, and a sentence about the change that was made."""

    partitions: int
    change: str | None = None


class ReplicationProblem(NamedTuple):
    """Reason why a topic is not replicated now, for its status record."""

    state: str
    reason: str
    remedy: str


def describe_problem(cluster: str, error: Exception) -> ReplicationProblem:
    """Return the problem and remedy for a failure of replication to a cluster."""
    if isinstance(error, TopicHeld):
        return ReplicationProblem("HELD", error.reason, error.remedy)
    state, remedy = "HELD", _remedy(cluster, error)
    if isinstance(error, NotConnected | OperationTimeout | RemoteClusterUnavailable):
        state, remedy = "DISCONNECTED", f"see that {cluster} is up and its addresses right (clusters get {cluster})"
    reason = str(error) if isinstance(error, PulsarError) else f"{type(error).__name__}: {error}"
    return ReplicationProblem(state, reason, f"{remedy}; it is tried again by itself")


def _remedy(cluster: str, error: Exception) -> str:
    record = "with its addresses: the whole record is replaced"
    status = error.http_status if isinstance(error, PulsarError) else None
    if isinstance(error, CertificateError):
        files = f"clusters update {cluster} --tls-certs-filepath ... --tls-key-filepath ..., {record}"
        return f"repair what the reason names, or name other files ({files})"
    if status in (401, 403):
        credentials = (
            f"credentials that may create topics there (clusters update {cluster} --auth-plugin ..., {record})"
        )
        return f"renew the token in its file, or give {cluster} {credentials}"
    if status in _REFUSED:
        return f"end on {cluster} what the reason names, such as a limit"
    return f"see the log of {cluster} for the reason, and that the address leads there (clusters get {cluster})"


class TopicProvisioner:
    """Provisioning of topics for one pair of clusters.

    ``creation_allowed`` is ``createTopicToRemoteClusterForReplication``. With ``expansion_allowed`` a remote topic with
    too few partitions is expanded; otherwise a difference holds the topic, and neither side is changed.
    """

    def __init__(
        self,
        source: AskPartitionMetadata,
        target: AdminClient,
        *,
        creation_allowed: bool = True,
        expansion_allowed: bool = False,
    ) -> None:
        self._source = source
        self._target = target
        self._creation_allowed = creation_allowed
        self._expansion_allowed = expansion_allowed

    async def ensure_topic(
        self, topic: TopicName, *, equal_before: int | None = None, there: TopicName | None = None
    ) -> Provisioned:
        """Return once both clusters have the base of ``topic`` with the same partition count.

        ``there`` is its name on the remote cluster, if it differs. ``equal_before`` is the count of both at the last
        check: if the source has been expanded since, the remote topic is too. Raise TopicHeld, or the error of a
        cluster that cannot be read.
        """
        base = topic.base
        there = base if there is None else there.base
        refusal: Conflict | None = None
        change: str | None = None
        for _ in range(_ATTEMPTS_MAX):
            remote = await self._remote_metadata(there)
            local = await _of_source(base, self._source(base))  # may change while the remote cluster answers
            plan = plan_topic(base, local, remote, may_create=self._creation_allowed, there=there)
            if plan.step is ProvisioningStep.CONNECT:
                return Provisioned(local.partitions, change)
            try:
                if plan.step is ProvisioningStep.CREATE:
                    change = await self._create(there, local.partitions)
                elif self._may_expand(local, remote, equal_before):
                    await self._target.topics.expand(there, local.partitions, local_only=True)
                    change = f"{there.local_name} expanded to {local.partitions} partitions: the source has grown"
                else:
                    differ = TopicKind.ABSENT not in (local.kind, remote.kind)
                    kind = PartitionsDiffer if differ else TopicHeld
                    raise kind(str(there), *hold_texts(base, local, there, remote, plan))
            except Conflict as error:  # another creation was faster, or the name is taken: check again
                refusal = error
        reason = f"{there} cannot be created on the remote cluster: {refusal or 'it vanishes again'}"
        raise TopicHeld(str(base), reason, "remove there what stands in the way")

    async def _remote_metadata(self, base: TopicName) -> Existence:
        try:
            return await partition_metadata(self._target, base)
        except (NamespaceNotFound, TenantNotFound) as error:
            namespace = base.namespace_name
            reason = f"namespace {namespace} does not exist on the remote cluster"
            raise TopicHeld(str(base), reason, f"create {namespace} there") from error

    async def _create(self, there: TopicName, partitions: int) -> str:
        if partitions:
            await self._target.topics.create_partitioned(there, partitions, local_only=True)
        else:
            await self._target.topics.create(there)
        return f"{there.local_name} created with {partitions or 'no'} partitions: it was absent there"

    def _may_expand(self, local: Existence, remote: Existence, equal_before: int | None) -> bool:
        wanted = self._expansion_allowed or remote.partitions == equal_before
        return wanted and may_grow(local, remote)


async def partition_metadata(admin: AdminClient, base: TopicName) -> Existence:
    """Return the existence of a name on a cluster, without creating it. Raise NamespaceNotFound."""
    try:
        metadata = await admin.topics.partitioned_metadata(base)
    except TopicNotFound:
        return Existence(TopicKind.ABSENT)
    if metadata.partitions == 0:
        return Existence(TopicKind.NON_PARTITIONED)
    return Existence(TopicKind.PARTITIONED, metadata.partitions)


async def create_namespace(source: AdminClient, here: NamespaceName, target: AdminClient, there: NamespaceName) -> bool:
    """Create a namespace on the remote cluster unless it exists. Return True if it was missing.

    It gets the source's policies in force that both clusters must share: auto-creation of topics, and schema updates.
    Raise TopicHeld if the tenant is missing, and the errors of a cluster.
    """
    try:
        await target.namespaces.policies(there)
        return False
    except (NamespaceNotFound, TenantNotFound):
        policies = await _of_source(here, source.namespaces.policies(here))
        settings = await _of_source(here, source.brokers.runtime_configuration())
    in_force = NamespaceState(policies, settings).in_force()
    wanted = NamespacePolicies(
        auto_topic_creation=as_override(in_force.auto_creation),
        schema_compatibility_strategy=in_force.schema_strategy,
        allow_auto_update_schema=in_force.auto_update_schema,
        allow_auto_update_schema_with_replicator=in_force.replicator_may_update_schema,
    )
    try:
        await target.namespaces.create(there, policies=wanted)
    except AlreadyExists:  # another call was faster
        return False
    except TenantNotFound as error:
        reason = f"tenant {there.tenant} does not exist on the remote cluster"
        raise TopicHeld(str(here), reason, f"create {there.tenant} there") from error
    return True


async def copy_schemas(
    source: AdminClient,
    topic: TopicName,
    register: Callable[[TopicName, SchemaInfo], Awaitable[object]],
    *,
    there: TopicName | None = None,
) -> None:
    """Pass all schemas of the topic to ``register``, oldest first.

    ``there`` is its name on the remote cluster, if it differs. Raise TopicHeld if the remote cluster refuses a schema.
    Later versions are then not tried, to preserve their order.
    """
    there = topic if there is None else there
    for entry in await _of_source(topic.base, _schema_history(source, topic)):
        try:
            await register(there.base, entry.schema)
        except IncompatibleSchema as error:
            reason = f"the remote cluster refuses version {entry.version} of the schema of {topic.base}: {error}"
            raise TopicHeld(str(topic.base), reason, _schema_remedy(there, error)) from error


def _schema_remedy(topic: TopicName, refusal: IncompatibleSchema) -> str:
    namespace = topic.namespace_name
    if "schema auto updating is disabled" in str(refusal).lower():
        switch = f"namespaces set-is-allow-auto-update-schema {namespace} --disable --enable-for-replicator"
        return f"let replicators register schemas there: {switch}"
    relaxed = f"relax the compatibility there (namespaces set-schema-compatibility-strategy {namespace} -c ...)"
    return f"{relaxed}, or delete the schema that stands in the way there (schemas delete {topic.base})"


async def _schema_history(source: AdminClient, topic: TopicName) -> list[SchemaVersion]:
    try:
        return await source.schemas.history(topic.base)
    except SchemaNotFound:
        return []


async def _of_source(asked: TopicName | NamespaceName, answer: Awaitable[T]) -> T:
    """Return the answer of the source.

    Its failure is raised as TopicHeld, so that it is not mistaken for one of the remote cluster.
    """
    try:
        return await answer
    except PulsarError as error:
        remedy = "see that the source cluster is up, and its log for the reason; it is tried again by itself"
        raise TopicHeld(str(asked), f"the source cluster cannot be asked for {asked}: {error}", remedy) from error
