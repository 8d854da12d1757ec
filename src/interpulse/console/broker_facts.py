"""Facts of a broker for pages, where no single call of the admin API returns them.

A broker passes in an implementation. A page that uses it first checks that the visitor may make the admin call that
returns these facts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from interpulse.model.adjustments import AdjustmentPlan
from interpulse.model.brokers import ListenerAddresses
from interpulse.model.names import Domain, NamespaceName, TopicName
from interpulse.model.permissions import TopicOperation
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies, TopicPolicyRecord
from interpulse.model.policies.policy_records import AutoTopicCreation
from interpulse.model.topics import Existence, SubscriptionMeasure, TopicMeasure
from interpulse.rules.lookup import LookupTarget
from interpulse.rules.topic_view import TopicView


@dataclass(frozen=True, slots=True)
class ConnectedProducer:
    """A producer of a loaded topic. Rates are per second."""

    topic: str
    name: str
    address: str
    rate_in: float
    throughput_in: float
    remote: str
    """The cluster that it replicates from; empty for a client."""


class LoadedTopic(Protocol):
    """A topic or partition that this broker has loaded."""

    @property
    def name(self) -> TopicName: ...

    @property
    def ledger_bytes(self) -> int:
        """The size of its ledgers, 0 for a topic that stores nothing."""

    def measure(self) -> tuple[TopicMeasure, Mapping[str, SubscriptionMeasure]]:
        """Return the statistics of the topic, and those of its subscriptions by name."""

    def subscription_kind(self, subscription: str) -> str | None:
        """Return the type of a subscription, None before its first consumer."""

    def producers(self) -> Iterable[ConnectedProducer]:
        """Return the producers that are connected now."""


@dataclass(frozen=True, slots=True)
class SettingFacts:
    """One key of the broker's configuration."""

    default: str
    help: str
    dynamic: bool
    """True if the key can change while brokers run."""


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """The file system of the data directory."""

    free_bytes: int | None
    size_bytes: int | None
    problem: str
    """The reason why the broker takes no messages; empty if it does."""


class JobFacts(Protocol):
    """The replication job of this broker."""

    @property
    def state(self) -> str: ...
    @property
    def since_ms(self) -> int: ...
    @property
    def restarts(self) -> int: ...
    @property
    def last_error(self) -> str | None: ...
    @property
    def retry_at_ms(self) -> int | None: ...
    @property
    def progress(self) -> Mapping[str, Mapping[str, Any]]:
        """The newest progress report of each remote cluster."""


class BrokerFacts(Protocol):
    """The broker that serves the console. Errors are those of the admin API."""

    @property
    def broker_id(self) -> str: ...

    @property
    def shared(self) -> bool:
        """True if the broker belongs to a cluster of several."""

    @property
    def roles_checked(self) -> bool:
        """True if authorization is on."""

    # --- names, and the decisions of rules about them

    async def tenants(self) -> Sequence[str]: ...

    async def namespaces(self, tenant: str) -> Sequence[str]:
        """Return the full names of a tenant's namespaces."""

    def local_names(self, namespace: NamespaceName, domain: Domain) -> AsyncIterator[tuple[str, bool]]:
        """Yield the local names of stored topics, and True for partitioned ones, in turns. Raise NamespaceNotFound."""

    async def view(self, topic: TopicName) -> TopicView:
        """Return the facts that rules decide on, with the partition records."""

    async def existence(self, topic: TopicName) -> Existence: ...

    async def partitions(self, topic: TopicName) -> int:
        """Return the partition count, 0 for a topic without partitions. Raise TopicNotFound."""

    async def check_role(self, role: str, operation: TopicOperation, topic: TopicName, subscription: str) -> None:
        """Raise AuthorizationError or TenantNotFound unless the role may do this. Only where roles are checked."""

    # --- policies and settings

    async def topic_policies(self, topic: TopicName) -> TopicPolicyRecord: ...

    async def namespace_policies(self, namespace: NamespaceName) -> NamespacePolicies | None:
        """Return the policies, None for a namespace that does not exist."""

    @property
    def policies(self) -> TopicPolicies:
        """The settings in force as the lowest level of policies."""

    @property
    def auto_topic_creation(self) -> AutoTopicCreation:
        """The setting for namespaces without this policy."""

    @property
    def settings(self) -> Mapping[str, SettingFacts]:
        """All configuration keys."""

    def setting_problem(self, key: str, value: str) -> str:
        """Return the reason why a value cannot be used; empty if it can."""

    # --- this broker

    @property
    def connections(self) -> int: ...

    @property
    def disk(self) -> DiskFacts | None:
        """Disk usage; None if entries are not stored in a data directory."""

    @property
    def entries_written(self) -> tuple[int, float, Sequence[float]]:
        """The number of entries written since the start, their waits in ms together, and the latest waits."""

    def loaded_topics(self) -> AsyncIterator[LoadedTopic]:
        """Yield the topics that are loaded here, in turns."""

    def loaded_topic(self, topic: TopicName) -> LoadedTopic | None: ...

    # --- other brokers of the cluster

    async def brokers(self) -> Mapping[str, ListenerAddresses]:
        """Return the addresses of all brokers by id, of a broker alone none."""

    async def owner_elsewhere(self, topic: TopicName) -> LookupTarget | None:
        """Return the other broker that serves the topic; None: this one does."""

    async def ask_owner(self, owner: LookupTarget, path: str) -> Any:
        """Return the answer of another broker to a GET about a topic, made in the name of this broker."""

    # --- replication

    @property
    def replication_job(self) -> JobFacts: ...

    @property
    def replication_states(self) -> tuple[str, ...]:
        """The states of a topic on its way to a remote cluster."""

    def replication_records(self, allowed: Callable[[NamespaceName], Awaitable[bool]]) -> AsyncIterator[dict[str, Any]]:
        """Yield the replication status of every replicated topic in an allowed namespace, in turns."""

    async def replication_totals(self) -> tuple[int, int]:
        """Return the number of pairs of topic and remote cluster, and of messages that wait for one."""

    async def preview_clusters(self, namespace: NamespaceName, clusters: Iterable[str]) -> AdjustmentPlan:
        """Return the changes that setting these replication clusters would need. Raise OperationNotAllowed."""
