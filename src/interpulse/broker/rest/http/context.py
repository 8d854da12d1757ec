"""The objects that the handlers of the admin API ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from interpulse.broker.access.setup import Access
from interpulse.broker.config.dynamic_config import DynamicConfig
from interpulse.broker.instruments import Instruments
from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.broker.replication.gathered_acknowledgements import GatheredAcknowledgements
from interpulse.broker.replication.replication_clusters import ReplicationClusters
from interpulse.broker.replication.replication_status import ReplicationStatus, ReplicationSurvey
from interpulse.broker.tenancy.clusters import Clusters, FailureDomains, IsolationPolicyRecords
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.broker.topics.deletion import Deletion
from interpulse.broker.topics.failover_roles import FailoverRoles
from interpulse.broker.topics.inactivity import InactiveTopics
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.lookup.bundles import Bundles
from interpulse.broker.topics.lookup.lookup import Lookups
from interpulse.broker.topics.metadata_changes import MetadataChanges
from interpulse.broker.topics.schemas import Schemas
from interpulse.broker.topics.topic_clusters import Expansion, TopicClusters
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.rules.lookup import LookupTarget
from interpulse.serving.address_events import FailedAuthentications

if TYPE_CHECKING:
    from interpulse.broker.ownership.other_brokers import OtherBrokers


@dataclass(frozen=True, slots=True)
class RestContext:
    """The objects that the handlers of the admin API ask. No handler holds a rule of its own."""

    clusters: Clusters
    failure_domains: FailureDomains
    isolation_policies: IsolationPolicyRecords
    tenants: Tenants
    namespaces: Namespaces
    bundles: Bundles
    lifecycle: TopicLifecycle
    registry: TopicRegistry
    lookups: Lookups
    schemas: Schemas
    deletion: Deletion
    inactive_topics: InactiveTopics
    expansion: Expansion
    topic_policies: TopicPolicyRecords
    failover_roles: FailoverRoles
    replication_clusters: ReplicationClusters
    topic_clusters: TopicClusters
    replication_status: ReplicationStatus
    replication_survey: ReplicationSurvey
    metadata_changes: MetadataChanges
    acknowledgements: GatheredAcknowledgements
    dynamic: DynamicConfig
    this_broker: LookupTarget
    instruments: Instruments
    ready: Callable[[], bool]
    """True from the moment clients can publish until the broker begins to stop."""

    others: OtherBrokers | None = None
    """The other brokers of the cluster; None: this one is alone."""
    access: Access | None = None
    """Access control; None if every client may do everything."""
    failed_authentications: FailedAuthentications = field(default_factory=FailedAuthentications)
