"""Admin calls for namespaces and their policies.

Reading a policy that is not set returns None, whether the broker answers 204 or 200 without a body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar

from interpulse.client.admin.clusters import path_segment
from interpulse.client.admin.policy_call import QUOTAS, read_policy
from interpulse.client.admin.previews import Changes, make_change
from interpulse.client.json_readers import (
    Read,
    boolean,
    each,
    ignored,
    integer,
    made_by,
    names,
    optional,
    record,
    records,
    string,
)
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.adjustments import PLAN_LEVELS
from interpulse.model.errors import InvalidRequest
from interpulse.model.names import NamespaceName, encode_local_name
from interpulse.model.policies.catalogue import NAMESPACE_CALLS
from interpulse.model.policies.namespace_policies import NamespacePolicies
from interpulse.model.policies.policy_records import (
    AutoTopicCreation,
    BacklogQuota,
    DispatchRate,
    InactiveTopicPolicies,
    QuotaType,
    RetentionPolicies,
)
from interpulse.model.policies.topic_policies import TopicPolicies

T = TypeVar("T")
Names = list[str]
Records = list[dict[str, Any]]

TopicMode = Literal["PERSISTENT", "NON_PERSISTENT", "ALL"]


class NamespacesAdmin:
    """Namespaces, named as ``tenant/namespace``."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def list(self, tenant: str) -> Names:
        """Return the full names of a tenant's namespaces. Raise TenantNotFound."""
        path = f"/admin/v2/namespaces/{path_segment('tenant', tenant)}"
        return await self._http.get(path, kind="tenant", read=names)

    async def topics(
        self, namespace: NamespaceName | str, *, mode: TopicMode = "ALL", system_included: bool = False
    ) -> Names:
        query = {"mode": mode, "includeSystemTopic": system_included}
        return await self._http.get(_path(namespace, "topics"), kind="namespace", read=names, query=query)

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

        With ``previewed`` nothing is changed and the changes are returned. Interpulse refuses ``policies`` that it
        would also refuse one by one; Apache Pulsar hardly checks them.
        """
        body: dict[str, Any] = policies.to_json() if policies else {}
        if clusters is not None:
            body["replication_clusters"] = list(clusters)
        if bundles:
            body["bundles"] = {"numBundles": bundles}
        return await make_change(self._http, "PUT", _path(namespace), body or None, kind="tenant", previewed=previewed)

    async def delete(
        self, namespace: NamespaceName | str, *, force: bool = False, previewed: bool = False
    ) -> Changes | None:
        """Delete a namespace. Raise Conflict if it has topics, unless it is forced.

        With ``previewed`` nothing is changed and the changes are returned.
        """
        query = {"force": force}
        return await make_change(
            self._http, "DELETE", _path(namespace), kind="namespace", query=query, previewed=previewed
        )

    async def unload(
        self, namespace: NamespaceName | str, *, bundle: str | None = None, destination_broker: str | None = None
    ) -> None:
        """Unload the topics of a namespace, or of one bundle ``0x..._0x...``. Clients reconnect."""
        path = _path(namespace, f"{bundle}/unload" if bundle else "unload")
        await self._http.put(path, kind="namespace", query={"destinationBroker": destination_broker})

    async def bundles(self, namespace: NamespaceName | str) -> dict[str, Any]:
        """Return ``boundaries``, the ends of the hash ranges, and ``numBundles``."""
        return await self._get(namespace, "bundles", record)

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
        path = _path(namespace, f"{bundle}/split")
        query = {"unload": unload, "splitAlgorithmName": algorithm}
        await self._http.put(path, list(positions) or None, kind="namespace", query=query)

    async def clear_backlog(
        self, namespace: NamespaceName | str, *, subscription: str | None = None, bundle: str | None = None
    ) -> None:
        """Acknowledge the backlog of all topics, or of one ``bundle``, for every subscription or for one."""
        await self._http.post(_scoped(namespace, bundle, "clearBacklog", subscription), kind="namespace")

    async def unsubscribe(
        self, namespace: NamespaceName | str, subscription: str, *, bundle: str | None = None
    ) -> None:
        """Delete a subscription on every topic that has it. Raise PreconditionFailed if it is in use."""
        await self._http.post(_scoped(namespace, bundle, "unsubscribe", subscription), kind="namespace")

    async def policies(self, namespace: NamespaceName | str) -> NamespacePolicies:
        return await self._http.get(_path(namespace), kind="namespace", read=made_by(NamespacePolicies.from_json))

    async def policies_json(self, namespace: NamespaceName | str) -> dict[str, Any]:
        """Return all policies as the JSON that the broker sent."""
        return await self._http.get(_path(namespace), kind="namespace", read=record)

    # Properties

    async def properties(self, namespace: NamespaceName | str) -> dict[str, str]:
        """Return the properties that operators have set. The broker does not interpret them."""
        return await self._get(namespace, "properties", record)

    async def update_properties(self, namespace: NamespaceName | str, properties: Mapping[str, str]) -> None:
        """Set these properties and keep the others."""
        await self._http.put(_path(namespace, "properties"), dict(properties), kind="namespace")

    async def clear_properties(self, namespace: NamespaceName | str) -> None:
        await self._delete(namespace, "properties")

    async def property(self, namespace: NamespaceName | str, key: str) -> str | None:
        """Return the value of a property; None if it is absent or empty."""
        _, value = await self._http.fetch(_property_path(namespace, key), kind="namespace")
        return value.decode() or None

    async def set_property(self, namespace: NamespaceName | str, key: str, value: str) -> None:
        await self._http.put(f"{_property_path(namespace, key)}/{path_segment('value', value)}", kind="namespace")

    async def remove_property(self, namespace: NamespaceName | str, key: str) -> None:
        """Remove a property, if the namespace has it."""
        await self._http.delete(_property_path(namespace, key), kind="namespace")

    # Replication

    async def replication_clusters(self, namespace: NamespaceName | str) -> Names:
        return await self._get(namespace, "replication", names)

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
        await self._http.post(_path(namespace, "replication"), list(clusters), kind="namespace", query=query)

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
        path = _path(namespace, "replication")
        return await self._http.ask_for_document(
            "POST", path, kind="namespace", marker="outcome", query=query, body=list(clusters), levels=PLAN_LEVELS
        )

    async def allowed_clusters(self, namespace: NamespaceName | str) -> Names:
        return await self._get(namespace, "allowedClusters", names)

    async def set_allowed_clusters(self, namespace: NamespaceName | str, clusters: Iterable[str]) -> None:
        await self._post(namespace, "allowedClusters", list(clusters))

    async def replication_status(self, namespace: NamespaceName | str) -> Records:
        """Return one record per topic and remote cluster. Raise NotSupported unless the broker is Interpulse."""
        return await self._get(namespace, "replication/status", records)

    async def topics_with_clusters(self, namespace: NamespaceName | str) -> dict[str, Names]:
        """Return the topics that have their own replication clusters, with these clusters.

        Raise NotSupported unless the broker is Interpulse.
        """
        return await self._get(namespace, "replication/topics", each(names))

    async def global_topic_policies(self, namespace: NamespaceName | str) -> dict[str, TopicPolicies]:
        """Return the topics with global policies, which hold in all clusters, with these policies.

        Raise NotSupported unless the broker is Interpulse.
        """
        return await self._get(namespace, "replication/globalTopicPolicies", each(made_by(TopicPolicies.from_json)))

    async def replicator_dispatch_rates(
        self, namespace: NamespaceName | str
    ) -> tuple[DispatchRate, dict[str, DispatchRate]]:
        """Return the replication rate of the namespace, and the rates of topics that have their own.

        Raise NotSupported unless the broker is Interpulse.
        """
        return await self._get(namespace, "replication/dispatchRates", made_by(_dispatch_rates))

    async def report_replication_status(self, namespace: NamespaceName | str, records: Records) -> None:
        """Replace the replication records of the topics and clusters that ``records`` name.

        The replication job reports its progress here. Interpulse only.
        """
        await self._post(namespace, "replication/status", records)

    # Automatic creation

    async def auto_topic_creation(
        self, namespace: NamespaceName | str, *, applied: bool = False
    ) -> AutoTopicCreation | None:
        """Return the namespace's override; None if the broker's settings apply.

        With ``applied`` Interpulse returns the settings in force. Apache Pulsar ignores it and returns the override.
        """
        query = {"applied": True if applied else None}
        path, read = _path(namespace, "autoTopicCreation"), optional(made_by(AutoTopicCreation.from_json))
        return await self._http.get(path, kind="namespace", read=read, query=query)

    async def set_auto_topic_creation(self, namespace: NamespaceName | str, policy: AutoTopicCreation) -> None:
        """Set the namespace's override. Raise PreconditionFailed if type and count do not match."""
        await self._post(namespace, "autoTopicCreation", policy.to_json())

    async def remove_auto_topic_creation(self, namespace: NamespaceName | str) -> None:
        await self._delete(namespace, "autoTopicCreation")

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
        enabled: bool | None = await self.policy(namespace, "deduplication_enabled")
        return enabled

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
        seconds: int | None = await self.policy(namespace, "message_ttl_seconds")
        return seconds

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
        return await self._get(namespace, entry.level.path, read_policy(entry))

    async def set_policy(self, namespace: NamespaceName | str, name: str, value: Any) -> None:
        """Set a policy by its name. Raise InvalidRequest or PreconditionFailed for an invalid value."""
        level, kind = NAMESPACE_CALLS[name].level, NAMESPACE_CALLS[name].policy.kind
        path = _path(namespace, level.path)
        await self._http.request(level.method, path, kind="namespace", read=ignored, body=kind.write(value))

    async def remove_policy(self, namespace: NamespaceName | str, name: str) -> None:
        """Remove a policy by its name. The broker's setting applies again."""
        level = NAMESPACE_CALLS[name].level
        method = "DELETE" if level.removable or level.cleared_by == "DELETE" else level.method
        await self._http.request(method, _path(namespace, level.path), kind="namespace", read=ignored)

    async def backlog_quotas(self, namespace: NamespaceName | str) -> dict[str, BacklogQuota]:
        """Return the backlog quotas by type. The broker's quota applies to a missing type."""
        return await self._get(namespace, "backlogQuotaMap", QUOTAS)

    async def set_backlog_quota(
        self, namespace: NamespaceName | str, quota: BacklogQuota, kind: QuotaType = "destination_storage"
    ) -> None:
        """Set the backlog quota of a type. Raise PreconditionFailed for a quota above the retention."""
        query = {"backlogQuotaType": kind}
        await self._http.post(_path(namespace, "backlogQuota"), quota.to_json(), kind="namespace", query=query)

    async def remove_backlog_quota(
        self, namespace: NamespaceName | str, kind: QuotaType = "destination_storage"
    ) -> None:
        await self._http.delete(_path(namespace, "backlogQuota"), kind="namespace", query={"backlogQuotaType": kind})

    # Limits

    async def max_topics(self, namespace: NamespaceName | str) -> int | None:
        """Return the maximum number of topics; 0 = no limit, None = the broker's limit."""
        return await self._get(namespace, "maxTopicsPerNamespace", optional(integer))

    async def set_max_topics(self, namespace: NamespaceName | str, count: int) -> None:
        await self._post(namespace, "maxTopicsPerNamespace", count)

    async def remove_max_topics(self, namespace: NamespaceName | str) -> None:
        await self._delete(namespace, "maxTopicsPerNamespace")

    # Schemas

    async def auto_update_schema_allowed(self, namespace: NamespaceName | str) -> bool:
        """Return True if producers may register new schemas, by the namespace's policy or the broker's setting."""
        return await self._get(namespace, "isAllowAutoUpdateSchema", boolean)

    async def set_auto_update_schema_allowed(
        self, namespace: NamespaceName | str, allowed: bool, *, with_replicator: bool | None = None
    ) -> None:
        """Allow or forbid producers to register schemas. ``with_replicator`` does the same for replicators.

        None keeps the setting of replicators.
        """
        query = {"allowAutoUpdateSchemaWithReplicator": with_replicator}
        await self._http.post(_path(namespace, "isAllowAutoUpdateSchema"), allowed, kind="namespace", query=query)

    async def schema_compatibility_strategy(self, namespace: NamespaceName | str) -> str:
        """Return the strategy; ``UNDEFINED`` if the broker's strategy applies."""
        return await self._get(namespace, "schemaCompatibilityStrategy", string)

    async def set_schema_compatibility_strategy(self, namespace: NamespaceName | str, strategy: str) -> None:
        await self.set_policy(namespace, "schema_compatibility_strategy", strategy)

    async def schema_auto_update_strategy(self, namespace: NamespaceName | str) -> str | None:
        """Return the older compatibility policy, such as ``Full``; None if it was never set."""
        return await self._get(namespace, "schemaAutoUpdateCompatibilityStrategy", optional(string))

    async def set_schema_auto_update_strategy(self, namespace: NamespaceName | str, strategy: str) -> None:
        """Set the older compatibility policy. It applies while ``schema_compatibility_strategy`` is UNDEFINED."""
        await self._http.put(_path(namespace, "schemaAutoUpdateCompatibilityStrategy"), strategy, kind="namespace")

    async def schema_validation_enforced(self, namespace: NamespaceName | str, *, applied: bool = False) -> bool:
        """Return True if producers without a schema are refused on topics that have one."""
        path, query = _path(namespace, "schemaValidationEnforced"), {"applied": applied}
        return await self._http.get(path, kind="namespace", read=boolean, query=query)

    async def set_schema_validation_enforced(self, namespace: NamespaceName | str, enforced: bool) -> None:
        await self.set_policy(namespace, "schema_validation_enforced", enforced)

    async def _get(self, namespace: NamespaceName | str, policy: str, read: Read[T]) -> T:
        return await self._http.get(_path(namespace, policy), kind="namespace", read=read)

    async def _post(self, namespace: NamespaceName | str, policy: str, value: object) -> None:
        await self._http.post(_path(namespace, policy), value, kind="namespace")

    async def _delete(self, namespace: NamespaceName | str, policy: str) -> None:
        await self._http.delete(_path(namespace, policy), kind="namespace")


def _dispatch_rates(body: Mapping[str, Any]) -> tuple[DispatchRate, dict[str, DispatchRate]]:
    return made_by(DispatchRate.from_json)(body["default"]), each(made_by(DispatchRate.from_json))(body["topics"])


def _property_path(namespace: NamespaceName | str, key: str) -> str:
    return _path(namespace, f"property/{path_segment('property', key)}")


def _scoped(namespace: NamespaceName | str, bundle: str | None, action: str, subscription: str | None) -> str:
    """Return the path of an action on the subscriptions of a namespace, or of one of its bundles."""
    if subscription == "":
        raise InvalidRequest("The name of a subscription must not be empty: an empty name means all subscriptions")
    name = encode_local_name(subscription) if subscription is not None else None
    return _path(namespace, "/".join(part for part in (bundle, action, name) if part is not None))


def _path(namespace: NamespaceName | str, last: str = "") -> str:
    root = f"/admin/v2/namespaces/{NamespaceName.parse(str(namespace))}"
    return f"{root}/{last}" if last else root
