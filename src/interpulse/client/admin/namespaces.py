"""Admin calls for namespaces and their policies.

Reading a policy that is not set returns None, whether the broker answers 204 or 200 without a body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar

from interpulse.client.admin.calls import QUOTAS, Changes, ask, make_change, read_policy, send, wait_text
from interpulse.client.json_readers import (
    Read,
    boolean,
    each,
    integer,
    made_by,
    names,
    optional,
    record,
    record_with,
    records,
    string,
)
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.adjustments import PLAN_LEVELS
from interpulse.model.errors import InvalidRequest
from interpulse.model.names import NamespaceName, encode_local_name
from interpulse.model.operations import Encoded, Namespaces, Replication, policy_operations
from interpulse.model.policies.catalogue import NAMESPACE_CALLS
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies
from interpulse.model.policies.policy_records import (
    AutoTopicCreation,
    BacklogQuota,
    DispatchRate,
    InactiveTopicPolicies,
    QuotaType,
    RetentionPolicies,
)

T = TypeVar("T")
Names = list[str]
Records = list[dict[str, Any]]

TopicMode = Literal["PERSISTENT", "NON_PERSISTENT", "ALL"]


class NamespacesAdmin:
    """Namespaces, named as ``tenant/namespace``.

    With ``previewed`` a method changes nothing and returns the changes that it would make.
    """

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def list(self, tenant: str) -> Names:
        """Return the full names of a tenant's namespaces. Raise TenantNotFound."""
        return await ask(self._http, Namespaces.LIST, tenant, read=names)

    async def topics(
        self, namespace: NamespaceName | str, *, mode: TopicMode = "ALL", system_included: bool = False
    ) -> Names:
        query = {"mode": mode, "includeSystemTopic": system_included}
        return await ask(self._http, Namespaces.LIST_TOPICS, namespace, read=names, query=query)

    async def create(
        self,
        namespace: NamespaceName | str,
        *,
        clusters: Iterable[str] | None = None,
        bundles: int | None = None,
        policies: NamespacePolicies | None = None,
        previewed: bool = False,
    ) -> Changes | None:
        """Create a namespace, by default on the local cluster. Raise AlreadyExists.

        Interpulse refuses ``policies`` that it would also refuse one by one; Apache Pulsar hardly checks them.
        """
        body: dict[str, Any] = policies.to_json() if policies else {}
        if clusters is not None:
            body["replication_clusters"] = list(clusters)
        if bundles:
            body["bundles"] = {"numBundles": bundles}
        return await make_change(self._http, Namespaces.CREATE, namespace, body=body or None, previewed=previewed)

    async def delete(
        self, namespace: NamespaceName | str, *, force: bool = False, previewed: bool = False
    ) -> Changes | None:
        """Delete a namespace. Raise Conflict if it has topics, unless it is forced."""
        query = {"force": force}
        return await make_change(self._http, Namespaces.DELETE, namespace, query=query, previewed=previewed)

    async def unload(
        self, namespace: NamespaceName | str, *, bundle: str | None = None, destination_broker: str | None = None
    ) -> None:
        """Unload the topics of a namespace, or of one bundle ``0x..._0x...``. Clients reconnect."""
        query = {"destinationBroker": destination_broker}
        if bundle:
            await send(self._http, Namespaces.UNLOAD_BUNDLE, namespace, bundle, query=query)
        else:
            await send(self._http, Namespaces.UNLOAD, namespace, query=query)

    async def bundles(self, namespace: NamespaceName | str) -> dict[str, Any]:
        """Return ``boundaries``, the ends of the hash ranges, and ``numBundles``."""
        return await ask(self._http, Namespaces.GET_BUNDLES, namespace, read=record)

    async def split_bundle(
        self,
        namespace: NamespaceName | str,
        bundle: str,
        *,
        algorithm: str | None = None,
        positions: Iterable[int] = (),
        unload: bool = False,
    ) -> None:
        """Split a bundle ``0x..._0x...`` or ``LARGEST``. ``positions`` belong to ``specified_positions_divide``."""
        query, body = {"unload": unload, "splitAlgorithmName": algorithm}, list(positions) or None
        await send(self._http, Namespaces.SPLIT_BUNDLE, namespace, bundle, query=query, body=body)

    async def clear_backlog(
        self, namespace: NamespaceName | str, *, subscription: str | None = None, bundle: str | None = None
    ) -> None:
        """Acknowledge the backlog of all topics, or of one ``bundle``, for every subscription or for one."""
        names = () if bundle is None else (bundle,)
        if subscription is None:
            operation = Namespaces.CLEAR_BUNDLE if names else Namespaces.CLEAR
            await send(self._http, operation, namespace, *names)
        else:
            operation = Namespaces.CLEAR_BUNDLE_ONE if names else Namespaces.CLEAR_ONE
            await send(self._http, operation, namespace, *names, _once(subscription))

    async def unsubscribe(
        self, namespace: NamespaceName | str, subscription: str, *, bundle: str | None = None
    ) -> None:
        """Delete a subscription on every topic that has it. Raise PreconditionFailed if it is in use."""
        if bundle is None:
            await send(self._http, Namespaces.UNSUBSCRIBE, namespace, _once(subscription))
        else:
            await send(self._http, Namespaces.UNSUBSCRIBE_BUNDLE, namespace, bundle, _once(subscription))

    async def policies(self, namespace: NamespaceName | str) -> NamespacePolicies:
        return await ask(self._http, Namespaces.GET_POLICIES, namespace, read=made_by(NamespacePolicies.from_json))

    async def policies_json(self, namespace: NamespaceName | str) -> dict[str, Any]:
        """Return all policies as the JSON that the broker sent."""
        return await ask(self._http, Namespaces.GET_POLICIES, namespace, read=record)

    # Properties

    async def properties(self, namespace: NamespaceName | str) -> dict[str, str]:
        """Return the properties that operators have set. The broker interprets only ``interpulse.failover.*``."""
        return await ask(self._http, Namespaces.GET_PROPERTIES, namespace, read=record)

    async def update_properties(self, namespace: NamespaceName | str, properties: Mapping[str, str]) -> None:
        """Set these properties and keep the others."""
        await send(self._http, Namespaces.ADD_PROPERTIES, namespace, body=dict(properties))

    async def clear_properties(self, namespace: NamespaceName | str) -> None:
        await send(self._http, Namespaces.CLEAR_PROPERTIES, namespace)

    async def property(self, namespace: NamespaceName | str, key: str) -> str | None:
        """Return the value of a property; None if it is absent or empty."""
        _, value = await self._http.fetch(Namespaces.GET_PROPERTY.path_of(namespace, key), kind="namespace")
        return value.decode() or None

    async def set_property(self, namespace: NamespaceName | str, key: str, value: str) -> None:
        await send(self._http, Namespaces.SET_PROPERTY, namespace, key, value)

    async def remove_property(self, namespace: NamespaceName | str, key: str) -> None:
        """Remove a property, if the namespace has it."""
        await send(self._http, Namespaces.REMOVE_PROPERTY, namespace, key)

    # Failover

    async def failover_role(self, namespace: NamespaceName | str) -> dict[str, Any]:
        """Return ``role``, as the property has it, ``epoch`` and ``since``, None if that is not known.

        With ``failoverPeer`` in the broker's configuration, ``peer`` has its ``cluster`` and last answer.
        """
        return await ask(self._http, Namespaces.GET_FAILOVER_ROLE, namespace, read=record)

    async def set_failover_role(
        self,
        namespace: NamespaceName | str,
        role: str,
        epoch: int,
        *,
        url: str | None = None,
        url_tls: str | None = None,
        subscriptions_ready: bool = False,
        closed_to: str | None = None,
        hold_consumers_for: int | None = None,
    ) -> dict[str, Any]:
        """Set the role ``active``, ``fenced``, ``standby`` or ``moved``, and wait until all brokers have applied it.

        Return ``role``, ``closedProducers``, and as ``positions`` the last position of every persistent topic unless
        local producers are served. With ``closed_to`` copies from that cluster are refused, by lanes as by replicators;
        without it they are taken again. For the seconds ``hold_consumers_for`` consumers of replicated subscriptions
        are closed and refused; the next call ends that. Raise Conflict if the stored epoch is higher.
        """
        fields = {"role": role, "epoch": epoch, "url": url, "urlTls": url_tls, "closedTo": closed_to}
        fields["holdConsumersFor"] = hold_consumers_for
        body = {key: value for key, value in fields.items() if value is not None}
        body["subscriptionsReady"] = subscriptions_ready
        return await ask(self._http, Namespaces.SET_FAILOVER_ROLE, namespace, read=record, body=body)

    async def set_migrated(self, namespace: NamespaceName | str, migrated: bool) -> None:
        """Redirect the clients of a namespace to the cluster of `ClustersAdmin.set_migration`, or end that.

        Apache Pulsar ends every topic of a migrated namespace for good; Interpulse redirects only. Raise Conflict if
        there is no cluster to redirect to.
        """
        await send(self._http, Namespaces.SET_MIGRATED, namespace, body=migrated)

    # Replication

    async def replication_clusters(self, namespace: NamespaceName | str) -> Names:
        return await ask(self._http, Namespaces.GET_CLUSTERS, namespace, read=names)

    async def set_replication_clusters(
        self,
        namespace: NamespaceName | str,
        clusters: Iterable[str],
        *,
        partitions_compared: bool | None = None,
    ) -> None:
        """Replicate the namespace to ``clusters``, which include the local one.

        With ``partitions_compared`` the broker first compares topics and policies with every cluster that is new in the
        list. It raises Conflict, naming the differences, if they do not match (PIP-433). None leaves the choice to the
        broker.
        """
        query = {"compareTopicPartitions": partitions_compared}
        await send(self._http, Namespaces.SET_CLUSTERS, namespace, query=query, body=list(clusters))

    async def adjust_for_replication(
        self,
        namespace: NamespaceName | str,
        clusters: Iterable[str],
        *,
        previewed: bool,
        shown_digest: str | None = None,
    ) -> dict[str, Any]:
        """Adjust policies and partition counts of the clusters that are new in the list, then replicate to them.

        Return the plan with its ``outcome``. Unless it is only ``previewed``, ``applied`` is included, and is false if
        a conflict or a failure stopped the plan. With ``shown_digest``, the digest of a preview, the plan is applied
        only if it has not changed since. Call this only if the broker's runtime configuration has
        ``supportsReplicationPreview``: Apache Pulsar ignores the parameters and stores the clusters.
        """
        query = {
            "adjustNamespaceLevelPoliciesAutomatically": True,
            "preview": previewed,
            "planDigest": shown_digest,
        }
        path = Namespaces.SET_CLUSTERS.path_of(namespace)
        return await self._http.ask_for_document(
            "POST", path, kind="namespace", marker="outcome", query=query, body=list(clusters), levels=PLAN_LEVELS
        )

    async def allowed_clusters(self, namespace: NamespaceName | str) -> Names:
        return await ask(self._http, Namespaces.GET_ALLOWED_CLUSTERS, namespace, read=names)

    async def set_allowed_clusters(self, namespace: NamespaceName | str, clusters: Iterable[str]) -> None:
        await send(self._http, Namespaces.SET_ALLOWED_CLUSTERS, namespace, body=list(clusters))

    async def replication_status(self, namespace: NamespaceName | str) -> Records:
        """Return one record per topic and remote cluster. Raise NotSupported unless the broker is Interpulse."""
        return await ask(self._http, Replication.GET_STATUS, namespace, read=records)

    async def topics_with_clusters(self, namespace: NamespaceName | str) -> dict[str, Names]:
        """Return the topics that have their own replication clusters, with these clusters.

        Raise NotSupported unless the broker is Interpulse.
        """
        return await ask(self._http, Replication.LIST_TOPICS, namespace, read=each(names))

    async def global_topic_policies(self, namespace: NamespaceName | str) -> dict[str, TopicPolicies]:
        """Return the topics with global policies, which hold in all clusters, with these policies.

        Raise NotSupported unless the broker is Interpulse.
        """
        read = each(made_by(TopicPolicies.from_json))
        return await ask(self._http, Replication.GET_GLOBAL_POLICIES, namespace, read=read)

    async def replicator_dispatch_rates(
        self, namespace: NamespaceName | str
    ) -> tuple[DispatchRate, dict[str, DispatchRate]]:
        """Return the replication rate of the namespace, and the rates of topics that have their own.

        Raise NotSupported unless the broker is Interpulse.
        """
        return await ask(self._http, Replication.GET_DISPATCH_RATES, namespace, read=made_by(_dispatch_rates))

    async def report_replication_status(self, namespace: NamespaceName | str, records: Records) -> None:
        """Replace the replication records of the topics and clusters that ``records`` name.

        The replication job reports its progress here. Interpulse only.
        """
        await send(self._http, Replication.REPORT_STATUS, namespace, body=records)

    async def acknowledgements(
        self,
        namespace: NamespaceName | str,
        *,
        since: str | None = None,
        wait_s: float = 0,
        every: bool = False,
    ) -> dict[str, Any]:
        """Return the state of subscriptions that changed since the ``token`` of an earlier answer, or of all.

        ``subscriptions`` are those marked as replicated, with ``every`` all durable ones. ``more`` is true if the next
        page follows immediately. If nothing changed, wait up to ``wait_s`` seconds, a minute at most. Raise
        InvalidRequest if that is not less than the time-out of this client, and NotSupported unless the broker is
        Interpulse.
        """
        query = {"since": since, "wait": wait_text(wait_s, self._http.timeout_ms), "all": every or None}
        read = record_with("token")
        return await ask(self._http, Replication.GET_ACKNOWLEDGEMENTS, namespace, read=read, query=query)

    # Automatic creation

    async def auto_topic_creation(
        self, namespace: NamespaceName | str, *, applied: bool = False
    ) -> AutoTopicCreation | None:
        """Return the namespace's override; None if the broker's settings apply.

        With ``applied`` Interpulse returns the settings in force. Apache Pulsar ignores it and returns the override.
        """
        read = optional(made_by(AutoTopicCreation.from_json))
        return await self._policy(namespace, "auto_topic_creation", read, applied=True if applied else None)

    async def set_auto_topic_creation(self, namespace: NamespaceName | str, policy: AutoTopicCreation) -> None:
        """Set the namespace's override. Raise PreconditionFailed if type and count do not match."""
        await self.set_policy(namespace, "auto_topic_creation", policy)

    async def remove_auto_topic_creation(self, namespace: NamespaceName | str) -> None:
        await self.remove_policy(namespace, "auto_topic_creation")

    async def auto_subscription_creation(self, namespace: NamespaceName | str) -> bool | None:
        allowed: bool | None = await self.policy(namespace, "auto_subscription_creation_allowed")
        return allowed

    async def set_auto_subscription_creation(self, namespace: NamespaceName | str, allowed: bool) -> None:
        await self.set_policy(namespace, "auto_subscription_creation_allowed", allowed)

    async def remove_auto_subscription_creation(self, namespace: NamespaceName | str) -> None:
        await self.remove_policy(namespace, "auto_subscription_creation_allowed")

    # Inactive topics

    async def inactive_topic_policies(self, namespace: NamespaceName | str) -> InactiveTopicPolicies | None:
        """Return the policies; None if the broker's settings apply."""
        policies: InactiveTopicPolicies | None = await self.policy(namespace, "inactive_topics")
        return policies

    async def set_inactive_topic_policies(
        self, namespace: NamespaceName | str, policies: InactiveTopicPolicies
    ) -> None:
        await self.set_policy(namespace, "inactive_topics", policies)

    async def remove_inactive_topic_policies(self, namespace: NamespaceName | str) -> None:
        await self.remove_policy(namespace, "inactive_topics")

    # Retention and backlog

    async def deduplication(self, namespace: NamespaceName | str) -> bool | None:
        return await self._policy(namespace, "deduplication_enabled", optional(boolean))

    async def set_deduplication(self, namespace: NamespaceName | str, enabled: bool) -> None:
        await self.set_policy(namespace, "deduplication_enabled", enabled)

    async def remove_deduplication(self, namespace: NamespaceName | str) -> None:
        await self.remove_policy(namespace, "deduplication_enabled")

    async def retention(self, namespace: NamespaceName | str) -> RetentionPolicies | None:
        policies: RetentionPolicies | None = await self.policy(namespace, "retention")
        return policies

    async def set_retention(self, namespace: NamespaceName | str, policy: RetentionPolicies) -> None:
        await self.set_policy(namespace, "retention", policy)

    async def remove_retention(self, namespace: NamespaceName | str) -> None:
        await self.remove_policy(namespace, "retention")

    async def message_ttl(self, namespace: NamespaceName | str) -> int | None:
        """Return the time to live in seconds; 0 = messages do not expire."""
        return await self._policy(namespace, "message_ttl_seconds", optional(integer))

    async def set_message_ttl(self, namespace: NamespaceName | str, ttl_seconds: int) -> None:
        await self.set_policy(namespace, "message_ttl_seconds", ttl_seconds)

    async def remove_message_ttl(self, namespace: NamespaceName | str) -> None:
        await self.remove_policy(namespace, "message_ttl_seconds")

    # Single policies by their names

    async def policy(self, namespace: NamespaceName | str, name: str) -> Any:
        """Return a policy by its name in the policy catalogue, such as ``max_producers``; None if it is not set.

        A rate such as ``publish_rate`` is the rate of the cluster that answers.
        """
        entry = NAMESPACE_CALLS[name]
        return await ask(self._http, policy_operations(entry).get, namespace, read=read_policy(entry))

    async def set_policy(self, namespace: NamespaceName | str, name: str, value: Any) -> None:
        """Set a policy by its name. Raise InvalidRequest or PreconditionFailed for an invalid value."""
        entry = NAMESPACE_CALLS[name]
        await send(self._http, policy_operations(entry).set, namespace, body=entry.policy.kind.write(value))

    async def remove_policy(self, namespace: NamespaceName | str, name: str) -> None:
        """Remove a policy by its name. The broker's setting applies again."""
        await send(self._http, policy_operations(NAMESPACE_CALLS[name]).remove, namespace)

    async def backlog_quotas(self, namespace: NamespaceName | str) -> dict[str, BacklogQuota]:
        """Return the backlog quotas by type. The broker's quota applies to a missing type."""
        return await ask(self._http, Namespaces.GET_QUOTAS, namespace, read=QUOTAS)

    async def set_backlog_quota(
        self, namespace: NamespaceName | str, quota: BacklogQuota, kind: QuotaType = "destination_storage"
    ) -> None:
        """Set the backlog quota of a type. Raise PreconditionFailed for a quota above the retention."""
        query = {"backlogQuotaType": kind}
        await send(self._http, Namespaces.SET_QUOTA, namespace, query=query, body=quota.to_json())

    async def remove_backlog_quota(
        self, namespace: NamespaceName | str, kind: QuotaType = "destination_storage"
    ) -> None:
        await send(self._http, Namespaces.REMOVE_QUOTA, namespace, query={"backlogQuotaType": kind})

    # Limits

    async def max_topics(self, namespace: NamespaceName | str) -> int | None:
        """Return the maximum number of topics; 0 = no limit, None = the broker's limit."""
        return await self._policy(namespace, "max_topics_per_namespace", optional(integer))

    async def set_max_topics(self, namespace: NamespaceName | str, count: int) -> None:
        await self.set_policy(namespace, "max_topics_per_namespace", count)

    async def remove_max_topics(self, namespace: NamespaceName | str) -> None:
        await self.remove_policy(namespace, "max_topics_per_namespace")

    # Schemas

    async def auto_update_schema_allowed(self, namespace: NamespaceName | str) -> bool:
        """Return True if producers may register new schemas, by the namespace's policy or the broker's setting."""
        return await self._policy(namespace, "allow_auto_update_schema", boolean)

    async def set_auto_update_schema_allowed(
        self, namespace: NamespaceName | str, allowed: bool, *, with_replicator: bool | None = None
    ) -> None:
        """Allow or forbid producers to register schemas. ``with_replicator`` does the same for replicators.

        None keeps the setting of replicators.
        """
        query = {"allowAutoUpdateSchemaWithReplicator": with_replicator}
        operation = policy_operations(NAMESPACE_CALLS["allow_auto_update_schema"]).set
        await send(self._http, operation, namespace, query=query, body=allowed)

    async def schema_compatibility_strategy(self, namespace: NamespaceName | str) -> str:
        """Return the strategy; ``UNDEFINED`` if the broker's strategy applies."""
        return await self._policy(namespace, "schema_compatibility_strategy", string)

    async def set_schema_compatibility_strategy(self, namespace: NamespaceName | str, strategy: str) -> None:
        await self.set_policy(namespace, "schema_compatibility_strategy", strategy)

    async def schema_auto_update_strategy(self, namespace: NamespaceName | str) -> str | None:
        """Return the older compatibility policy, such as ``Full``; None if it was never set."""
        return await ask(self._http, Namespaces.GET_LEGACY_STRATEGY, namespace, read=optional(string))

    async def set_schema_auto_update_strategy(self, namespace: NamespaceName | str, strategy: str) -> None:
        """Set the older compatibility policy. It applies while ``schema_compatibility_strategy`` is UNDEFINED."""
        await send(self._http, Namespaces.SET_LEGACY_STRATEGY, namespace, body=strategy)

    async def schema_validation_enforced(self, namespace: NamespaceName | str, *, applied: bool = False) -> bool:
        """Return True if producers without a schema are refused on topics that have one."""
        return await self._policy(namespace, "schema_validation_enforced", boolean, applied=applied)

    async def set_schema_validation_enforced(self, namespace: NamespaceName | str, enforced: bool) -> None:
        await self.set_policy(namespace, "schema_validation_enforced", enforced)

    async def _policy(
        self, namespace: NamespaceName | str, name: str, read: Read[T], *, applied: bool | None = None
    ) -> T:
        operation = policy_operations(NAMESPACE_CALLS[name]).get
        return await ask(self._http, operation, namespace, read=read, query={"applied": applied})


def _dispatch_rates(body: Mapping[str, Any]) -> tuple[DispatchRate, dict[str, DispatchRate]]:
    return made_by(DispatchRate.from_json)(body["default"]), each(made_by(DispatchRate.from_json))(body["topics"])


def _once(subscription: str) -> Encoded:
    """Encode a subscription once: below a namespace, brokers do not decode it twice."""
    if not subscription:
        raise InvalidRequest("The name of a subscription must not be empty: an empty name means all subscriptions")
    return Encoded(encode_local_name(subscription))
