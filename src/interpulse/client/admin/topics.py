"""Admin calls about topics and their subscriptions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Literal
from urllib.parse import quote

from interpulse.client.admin.messages import is_committed, is_marker, messages_in_answer
from interpulse.client.admin.topic_policies import TopicPoliciesAdmin
from interpulse.client.admin.topic_requests import (
    LATEST_ID,
    begin_position,
    encoded_subscription,
    message_id_of,
    reset_position,
    stats_query,
    subscription_path,
    topic_path,
)
from interpulse.client.json_readers import (
    each,
    ignored,
    integer,
    made_by,
    names,
    optional,
    record,
    record_with,
    records,
    string,
)
from interpulse.client.messages import Message
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.errors import NotFound
from interpulse.model.ids import MessageId
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName, TopicName
from interpulse.model.policies.namespace_policies import InactiveTopicPolicies
from interpulse.model.topics import PartitionedTopicMetadata

__all__ = ["ExaminePosition", "TopicsAdmin"]

Names = list[str]
Records = list[dict[str, Any]]
Messages = list[Message]
ExaminePosition = Literal["earliest", "latest"]

_METADATA_JSON = "application/vnd.partitioned-topic-metadata+json"
_BOTH_DOMAINS: tuple[Domain, ...] = (PERSISTENT, NON_PERSISTENT)


class TopicsAdmin:
    """Topics, partitioned topics and subscriptions. Topics are given by complete or short names."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http
        self._policies = TopicPoliciesAdmin(http)

    # Lists

    async def list(
        self,
        namespace: NamespaceName | str,
        *,
        domains: Iterable[Domain] = _BOTH_DOMAINS,
        system_included: bool = False,
        bundle: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Names:
        """Complete names of the topics that have storage or are loaded, partitions included; of one bundle if one is
        named.

        With properties only those that have all of them. A real broker leaves that to a plug-in, and lists all topics
        without one.
        """
        return await self._list(namespace, "", domains, system_included, bundle, properties)

    async def list_partitioned(
        self,
        namespace: NamespaceName | str,
        *,
        domains: Iterable[Domain] = _BOTH_DOMAINS,
        system_included: bool = False,
    ) -> Names:
        """Complete base names of the partitioned topics."""
        return await self._list(namespace, "/partitioned", domains, system_included)

    async def partition_counts(
        self,
        namespace: NamespaceName | str,
        *,
        domains: Iterable[Domain] = _BOTH_DOMAINS,
        system_included: bool = False,
    ) -> dict[str, int | None]:
        """The same names with their partition counts, from as few requests.

        None = ask for this topic by itself: a real broker lists names only, and ours does not know a count for a topic
        that is being deleted.
        """
        query = {"includeSystemTopic": system_included, "partitionCounts": True}
        counts: dict[str, int | None] = {}
        for domain in domains:
            path = f"/admin/v2/{domain}/{NamespaceName.parse(str(namespace))}/partitioned"
            counts |= await self._http.get(path, kind="namespace", read=_partition_counts, query=query)
        return counts

    async def _list(
        self,
        namespace: NamespaceName | str,
        suffix: str,
        domains: Iterable[Domain],
        system_included: bool,
        bundle: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Names:
        name = NamespaceName.parse(str(namespace))
        pairs = ",".join(f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in (properties or {}).items())
        query = {"includeSystemTopic": system_included, "bundle": bundle, "properties": pairs or None}
        topics: Names = []
        for domain in domains:
            path = f"/admin/v2/{domain}/{name}{suffix}"
            topics += await self._http.get(path, kind="namespace", read=names, query=query)
        return topics

    # Existence and partitions

    async def create(self, topic: TopicName | str, properties: Mapping[str, str] | None = None) -> None:
        """Create a non-partitioned topic. Raises AlreadyExists."""
        await self._http.put(topic_path(topic), dict(properties or {}), kind="namespace")

    async def create_partitioned(
        self,
        topic: TopicName | str,
        partitions: int,
        *,
        properties: Mapping[str, str] | None = None,
        local_only: bool = False,
    ) -> None:
        """Create a partitioned topic and all its partitions.

        ``local_only`` keeps the request from being passed on to the clusters of the namespace. With it a real broker
        accepts a topic that exists already with the same or a larger count: ask for the count afterwards.
        """
        query = {"createLocalTopicOnly": local_only}
        path = topic_path(topic, "partitions")
        if not properties:
            await self._http.put(path, partitions, kind="namespace", query=query)
            return
        body = {"partitions": partitions, "properties": dict(properties)}
        await self._http.request(
            "PUT", path, kind="namespace", read=ignored, query=query, body=body, content_type=_METADATA_JSON
        )

    async def expand(
        self, topic: TopicName | str, partitions: int, *, local_only: bool = False, force: bool = False
    ) -> None:
        """Let a partitioned topic grow to ``partitions``. Raises Conflict if it is not one."""
        query = {"updateLocalTopicOnly": local_only, "force": force}
        await self._http.post(topic_path(topic, "partitions"), partitions, kind="topic", query=query)

    async def create_missed_partitions(self, topic: TopicName | str) -> None:
        """Create the partitions that the metadata counts but that have no storage."""
        await self._http.post(topic_path(topic, "createMissedPartitions"), kind="topic")

    async def partitioned_metadata(self, topic: TopicName | str, *, create: bool = False) -> PartitionedTopicMetadata:
        """The partition metadata of a topic; ``partitions == 0`` means it is not partitioned. Raises TopicNotFound.

        With ``create`` a missing topic is created where the policies of the cluster allow it (PIP-344).
        """
        path, query = topic_path(topic, "partitions"), {"checkAllowAutoCreation": create}
        return await self._http.get(path, kind="topic", read=made_by(PartitionedTopicMetadata.from_json), query=query)

    async def delete(self, topic: TopicName | str, *, force: bool = False, schema_deleted: bool = True) -> None:
        """Delete one topic or one partition. Raises PreconditionFailed if it is in use and not forced."""
        query = {"force": force, "deleteSchema": schema_deleted}
        await self._http.delete(topic_path(topic), kind="topic", query=query)

    async def delete_partitioned(
        self, topic: TopicName | str, *, force: bool = False, schema_deleted: bool = True
    ) -> None:
        """Delete a partitioned topic with all its partitions."""
        query = {"force": force, "deleteSchema": schema_deleted}
        await self._http.delete(topic_path(topic, "partitions"), kind="topic", query=query)

    async def truncate(self, topic: TopicName | str) -> None:
        """Move every subscription to the end and forget the messages; a real broker keeps those of the last ledger."""
        await self._http.delete(topic_path(topic, "truncate"), kind="topic")

    async def trim(self, topic: TopicName | str) -> None:
        """Let the broker forget now what no subscription and no policy needs any more, of all partitions."""
        await self._http.post(topic_path(topic, "trim"), kind="topic")

    async def unload(self, topic: TopicName | str) -> None:
        """Close the topic in its broker; clients reconnect and load it again."""
        await self._http.put(topic_path(topic, "unload"), kind="topic")

    async def terminate(self, topic: TopicName | str) -> MessageId:
        """Let the topic take no more messages; the answer is its last one."""
        return await self._http.request(
            "POST", topic_path(topic, "terminate"), kind="topic", read=made_by(message_id_of)
        )

    async def terminate_partitioned(self, topic: TopicName | str) -> dict[int, MessageId]:
        """As :meth:`terminate` for every partition, by partition index."""
        path, read = topic_path(topic, "terminate/partitions"), made_by(_last_of_partitions)
        return await self._http.request("POST", path, kind="topic", read=read)

    # Properties

    async def properties(self, topic: TopicName | str) -> dict[str, str]:
        """The properties of a topic, from its creation or later. Raises TopicNotFound."""
        return await self._http.get(topic_path(topic, "properties"), kind="topic", read=each(string))

    async def update_properties(self, topic: TopicName | str, properties: Mapping[str, str]) -> None:
        """Set these; others stay as they are."""
        await self._http.put(topic_path(topic, "properties"), dict(properties), kind="topic")

    async def remove_property(self, topic: TopicName | str, key: str) -> None:
        """Nothing happens if the topic has no such property."""
        await self._http.delete(topic_path(topic, "properties"), kind="topic", query={"key": key})

    # Compaction

    async def compact(self, topic: TopicName | str) -> None:
        """Begin to compact the topic, or all partitions of one. Raises Conflict while it is being compacted."""
        await self._http.put(topic_path(topic, "compaction"), kind="topic")

    async def compaction_status(self, topic: TopicName | str) -> dict[str, Any]:
        """``status`` is NOT_RUN, RUNNING, SUCCESS or ERROR, ``lastError`` says why it failed; of one partition only."""
        return await self._http.get(topic_path(topic, "compaction"), kind="topic", read=record_with("status"))

    # What is inside

    async def stats(
        self,
        topic: TopicName | str,
        *,
        precise_backlog: bool = False,
        backlog_size: bool = True,
        earliest_time_in_backlog: bool = False,
        exclude_publishers: bool = False,
        exclude_consumers: bool = False,
    ) -> dict[str, Any]:
        query = stats_query(precise_backlog, backlog_size, earliest_time_in_backlog)
        query |= _left_out(exclude_publishers, exclude_consumers)
        return await self._http.get(topic_path(topic, "stats"), kind="topic", read=record, query=query)

    async def partitioned_stats(
        self,
        topic: TopicName | str,
        *,
        per_partition: bool = True,
        precise_backlog: bool = False,
        backlog_size: bool = True,
        earliest_time_in_backlog: bool = False,
        exclude_publishers: bool = False,
        exclude_consumers: bool = False,
    ) -> dict[str, Any]:
        query = stats_query(precise_backlog, backlog_size, earliest_time_in_backlog) | {"perPartition": per_partition}
        query |= _left_out(exclude_publishers, exclude_consumers)
        return await self._http.get(topic_path(topic, "partitioned-stats"), kind="topic", read=record, query=query)

    async def internal_stats(self, topic: TopicName | str, *, metadata: bool = False) -> dict[str, Any]:
        """Ledgers and cursors."""
        query = {"metadata": metadata}
        return await self._http.get(topic_path(topic, "internalStats"), kind="topic", read=record, query=query)

    async def internal_info(self, topic: TopicName | str) -> dict[str, Any]:
        """Ledgers and cursors as they are recorded, without loading the topic: also of one that cannot be loaded."""
        return await self._http.get(topic_path(topic, "internal-info"), kind="topic", read=record)

    async def partitioned_internal_stats(self, topic: TopicName | str) -> dict[str, Any]:
        """As :meth:`internal_stats` for every partition."""
        return await self._http.get(topic_path(topic, "partitioned-internalStats"), kind="topic", read=record)

    async def last_message_id(self, topic: TopicName | str) -> MessageId:
        return await self._http.get(topic_path(topic, "lastMessageId"), kind="topic", read=made_by(message_id_of))

    async def last_message_id_json(self, topic: TopicName | str) -> dict[str, Any]:
        """As :meth:`last_message_id`, with every field as the broker sent it."""
        return await self._http.get(topic_path(topic, "lastMessageId"), kind="topic", read=record)

    # Single messages

    async def peek(
        self,
        topic: TopicName | str,
        subscription: str,
        count: int = 1,
        *,
        markers_shown: bool = False,
        uncommitted_shown: bool = False,
    ) -> Messages:
        """The next ``count`` messages of a subscription, which does not move; fewer if there are no more.

        What brokers wrote themselves and what no transaction has committed is left out unless it is asked for. A real
        broker creates a subscription that is missing, at the beginning of the topic.
        """
        messages: Messages = []
        for place in itertools.count(1):
            path = f"subscription/{encoded_subscription(subscription)}/position/{place}"
            try:
                headers, found = await self._messages(topic, path)
                if (markers_shown or not is_marker(headers)) and (uncommitted_shown or is_committed(headers)):
                    messages += found
            except NotFound as error:
                if type(error) is not NotFound:  # the topic or the subscription
                    raise
                break
            if len(messages) >= count:
                break
        return messages[:count]

    async def examine(self, topic: TopicName | str, initial_position: ExaminePosition, number: int) -> Messages:
        """The messages of the ``number``-th entry, from 1, counted from the first one or back from the last one."""
        query = {"initialPosition": initial_position, "messagePosition": number}
        return (await self._messages(topic, "examinemessage", query))[1]

    async def message_by_id(self, topic: TopicName | str, ledger: int, entry: int) -> Messages:
        """The messages of one entry. Raises NotFound."""
        return (await self._messages(topic, f"ledger/{ledger}/entry/{entry}"))[1]

    async def _messages(
        self, topic: TopicName | str, last: str, query: Mapping[str, object] | None = None
    ) -> tuple[Mapping[str, str], Messages]:
        name = TopicName.parse(str(topic))
        headers, payload = await self._http.fetch(topic_path(name, last), kind="message", query=query)
        return headers, messages_in_answer(headers, payload, name)

    async def message_id_at(self, topic: TopicName | str, time_ms: int) -> dict[str, Any]:
        """The position of the first message published at or after a time, or of the next one to come; as JSON."""
        return await self._http.get(topic_path(topic, f"messageid/{time_ms}"), kind="topic", read=record)

    # Subscriptions

    async def subscriptions(self, topic: TopicName | str) -> Names:
        return await self._http.get(topic_path(topic, "subscriptions"), kind="topic", read=names)

    async def create_subscription(
        self,
        topic: TopicName | str,
        subscription: str,
        position: MessageId | None = None,
        *,
        replicated: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create a subscription at ``position``, by default after the last message. Raises AlreadyExists."""
        body = begin_position(position or LATEST_ID)
        if properties:
            body["properties"] = dict(properties)
        path = subscription_path(topic, subscription)
        await self._http.put(path, body, kind="topic", query={"replicated": replicated})

    async def delete_subscription(self, topic: TopicName | str, subscription: str, *, force: bool = False) -> None:
        """Raises PreconditionFailed if a consumer is connected and not forced."""
        await self._http.delete(subscription_path(topic, subscription), kind="subscription", query={"force": force})

    async def reset_cursor_to_time(self, topic: TopicName | str, subscription: str, time_ms: int) -> None:
        """Continue with the first message published at or after ``time_ms`` (milliseconds since 1970)."""
        await self._http.post(subscription_path(topic, subscription, f"resetcursor/{time_ms}"), kind="subscription")

    async def reset_cursor_to_message(
        self, topic: TopicName | str, subscription: str, position: MessageId, *, excluded: bool = False
    ) -> None:
        """Continue with the message at ``position``, or after it if ``excluded``."""
        body = (reset_position if excluded else begin_position)(position) | {"excluded": excluded}
        await self._http.post(subscription_path(topic, subscription, "resetcursor"), body, kind="subscription")

    async def skip(self, topic: TopicName | str, subscription: str, count: int) -> None:
        """Acknowledge the next ``count`` messages of the subscription."""
        await self._http.post(subscription_path(topic, subscription, f"skip/{count}"), kind="subscription")

    async def skip_all(self, topic: TopicName | str, subscription: str) -> None:
        """Acknowledge the whole backlog of the subscription."""
        await self._http.post(subscription_path(topic, subscription, "skip_all"), kind="subscription")

    async def expire(self, topic: TopicName | str, subscription: str, older_than_seconds: int) -> None:
        """Acknowledge what was published longer ago than that. Raises Conflict if there is no backlog."""
        path = subscription_path(topic, subscription, f"expireMessages/{older_than_seconds}")
        await self._http.post(path, kind="subscription")

    async def expire_upto(
        self, topic: TopicName | str, subscription: str, position: MessageId, *, excluded: bool = False
    ) -> None:
        """Acknowledge everything up to a message, with ``excluded`` the entry behind it as well: so Pulsar reads it.

        Raises Conflict if that is behind the last one.
        """
        body = reset_position(position) | {"excluded": excluded}
        await self._http.post(subscription_path(topic, subscription, "expireMessages"), body, kind="subscription")

    async def expire_all(self, topic: TopicName | str, older_than_seconds: int) -> None:
        """As :meth:`expire` for every subscription."""
        await self._http.post(topic_path(topic, f"all_subscription/expireMessages/{older_than_seconds}"), kind="topic")

    async def backlog_size(self, topic: TopicName | str, position: MessageId) -> int:
        """About how many bytes lie behind a message of one topic or partition; before the first one, all of them."""
        path, body = topic_path(topic, "backlogSize"), reset_position(position)
        return await self._http.request("PUT", path, kind="topic", read=integer, body=body)

    async def analyze_backlog(
        self, topic: TopicName | str, subscription: str, start: MessageId | None = None
    ) -> dict[str, Any]:
        """Let the broker read what a subscription of one topic or partition waits for, from ``start`` on, and count it.

        ``entries`` and ``messages`` are exact unless ``aborted``: then there was more than the broker reads at once, up
        to ``lastMessageId``.
        """
        body = None if start is None else begin_position(start)
        path = subscription_path(topic, subscription, "analyzeBacklog")
        return await self._http.request("POST", path, kind="subscription", read=record, body=body)

    async def subscription_properties(self, topic: TopicName | str, subscription: str) -> dict[str, str]:
        path = subscription_path(topic, subscription, "properties")
        return await self._http.get(path, kind="subscription", read=each(string))

    async def set_subscription_properties(
        self, topic: TopicName | str, subscription: str, properties: Mapping[str, str]
    ) -> None:
        """Replace all properties of a subscription."""
        path = subscription_path(topic, subscription, "properties")
        await self._http.put(path, dict(properties), kind="subscription")

    # Policies

    async def inactive_topic_policies(
        self, topic: TopicName | str, *, applied: bool = False
    ) -> InactiveTopicPolicies | None:
        """The topic's own value; None if its namespace decides. ``applied`` asks for the value in force."""
        policies: InactiveTopicPolicies | None = await self._policies.get(topic, "inactive_topics", applied=applied)
        return policies

    async def set_inactive_topic_policies(self, topic: TopicName | str, policies: InactiveTopicPolicies) -> None:
        await self._policies.set(topic, "inactive_topics", policies)

    async def remove_inactive_topic_policies(self, topic: TopicName | str) -> None:
        await self._policies.remove(topic, "inactive_topics")

    # Replication

    async def replication_clusters(self, topic: TopicName | str, *, applied: bool = False) -> Names | None:
        """The clusters set for this topic; None if the namespace decides. ``applied`` asks for those in force."""
        clusters: Names | None = await self._policies.get(topic, "replication_clusters", applied=applied)
        return clusters

    async def set_replication_clusters(self, topic: TopicName | str, clusters: Iterable[str]) -> None:
        await self._policies.set(topic, "replication_clusters", clusters)

    async def remove_replication_clusters(self, topic: TopicName | str) -> None:
        await self._policies.remove(topic, "replication_clusters")

    async def replication_status(self, topic: TopicName | str) -> Records:
        """How far each remote cluster is, and why it is held. Raises NotSupported if the broker is not ours."""
        return await self._http.get(topic_path(topic, "replication/status"), kind="topic", read=records)


def _partition_counts(body: Any) -> dict[str, int | None]:
    """Names with counts, or names only."""
    return each(optional(integer))(body) if isinstance(body, dict) else dict.fromkeys(names(body))


def _last_of_partitions(body: Mapping[str, Any]) -> dict[int, MessageId]:
    return {int(index): message_id_of(last) for index, last in body.items()}


def _left_out(publishers: bool, consumers: bool) -> dict[str, bool]:
    """Said only where it is wanted, as older brokers do not know it."""
    asked = {"excludePublishers": publishers, "excludeConsumers": consumers}
    return {key: wanted for key, wanted in asked.items() if wanted}
