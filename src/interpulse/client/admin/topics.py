"""Admin calls for topics and their subscriptions."""

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
from interpulse.model.policies.policy_records import InactiveTopicPolicies
from interpulse.model.topics import PartitionedTopicMetadata

Names = list[str]
Records = list[dict[str, Any]]
Messages = list[Message]
ExaminePosition = Literal["earliest", "latest"]

_METADATA_JSON = "application/vnd.partitioned-topic-metadata+json"
_BOTH_DOMAINS: tuple[Domain, ...] = (PERSISTENT, NON_PERSISTENT)


class TopicsAdmin:
    """Topics, partitioned topics and subscriptions. Topics are given by full or short names."""

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
        """Return the full names of topics that are stored or loaded, partitions included.

        ``bundle`` limits the list to one bundle, ``properties`` to topics that have all of them. Apache Pulsar leaves
        properties to a plug-in and ignores them without one.
        """
        return await self._list(namespace, "", domains, system_included, bundle, properties)

    async def list_partitioned(
        self,
        namespace: NamespaceName | str,
        *,
        domains: Iterable[Domain] = _BOTH_DOMAINS,
        system_included: bool = False,
    ) -> Names:
        """Return the full base names of the partitioned topics."""
        return await self._list(namespace, "/partitioned", domains, system_included)

    async def partition_counts(
        self,
        namespace: NamespaceName | str,
        *,
        domains: Iterable[Domain] = _BOTH_DOMAINS,
        system_included: bool = False,
    ) -> dict[str, int | None]:
        """Return the partitioned topics with their partition counts, with as few requests as possible.

        None means that the count must be requested for this topic alone: Apache Pulsar lists names only, and Interpulse
        has no count for a topic that is being deleted.
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

        With ``local_only`` the broker does not create it in the other clusters of the namespace. Apache Pulsar then
        accepts a topic that already exists with the same or a larger count: check the count afterwards.
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
        """Increase the number of partitions to ``partitions``. Raise Conflict if the topic is not partitioned."""
        query = {"updateLocalTopicOnly": local_only, "force": force}
        await self._http.post(topic_path(topic, "partitions"), partitions, kind="topic", query=query)

    async def create_missed_partitions(self, topic: TopicName | str) -> None:
        """Create the partitions that the metadata counts but that are not stored."""
        await self._http.post(topic_path(topic, "createMissedPartitions"), kind="topic")

    async def partitioned_metadata(self, topic: TopicName | str, *, create: bool = False) -> PartitionedTopicMetadata:
        """Return the partition metadata of a topic. ``partitions == 0`` means not partitioned. Raise TopicNotFound.

        With ``create`` a missing topic is created if the cluster's policies allow it (PIP-344).
        """
        path, query = topic_path(topic, "partitions"), {"checkAllowAutoCreation": create}
        return await self._http.get(path, kind="topic", read=made_by(PartitionedTopicMetadata.from_json), query=query)

    async def delete(self, topic: TopicName | str, *, force: bool = False, schema_deleted: bool = True) -> None:
        """Delete one topic or one partition. Raise PreconditionFailed if it is in use, unless it is forced."""
        query = {"force": force, "deleteSchema": schema_deleted}
        await self._http.delete(topic_path(topic), kind="topic", query=query)

    async def delete_partitioned(
        self, topic: TopicName | str, *, force: bool = False, schema_deleted: bool = True
    ) -> None:
        """Delete a partitioned topic with all its partitions."""
        query = {"force": force, "deleteSchema": schema_deleted}
        await self._http.delete(topic_path(topic, "partitions"), kind="topic", query=query)

    async def truncate(self, topic: TopicName | str) -> None:
        """Move every subscription to the end and delete the messages. Apache Pulsar keeps those of the last ledger."""
        await self._http.delete(topic_path(topic, "truncate"), kind="topic")

    async def trim(self, topic: TopicName | str) -> None:
        """Delete the messages that no subscription and no policy retains, in all partitions, now."""
        await self._http.post(topic_path(topic, "trim"), kind="topic")

    async def unload(self, topic: TopicName | str) -> None:
        """Unload the topic from its broker. Clients reconnect and load it again."""
        await self._http.put(topic_path(topic, "unload"), kind="topic")

    async def terminate(self, topic: TopicName | str) -> MessageId:
        """Terminate the topic: it accepts no more messages. Return the id of its last message."""
        return await self._http.request(
            "POST", topic_path(topic, "terminate"), kind="topic", read=made_by(message_id_of)
        )

    async def terminate_partitioned(self, topic: TopicName | str) -> dict[int, MessageId]:
        """Terminate every partition. Return the id of the last message by partition index."""
        path, read = topic_path(topic, "terminate/partitions"), made_by(_last_of_partitions)
        return await self._http.request("POST", path, kind="topic", read=read)

    # Properties

    async def properties(self, topic: TopicName | str) -> dict[str, str]:
        """Return the properties of a topic. Raise TopicNotFound."""
        return await self._http.get(topic_path(topic, "properties"), kind="topic", read=each(string))

    async def update_properties(self, topic: TopicName | str, properties: Mapping[str, str]) -> None:
        """Set these properties and keep the others."""
        await self._http.put(topic_path(topic, "properties"), dict(properties), kind="topic")

    async def remove_property(self, topic: TopicName | str, key: str) -> None:
        """Remove a property, if the topic has it."""
        await self._http.delete(topic_path(topic, "properties"), kind="topic", query={"key": key})

    # Compaction

    async def compact(self, topic: TopicName | str) -> None:
        """Start compaction of the topic, or of all its partitions. Raise Conflict while it is running."""
        await self._http.put(topic_path(topic, "compaction"), kind="topic")

    async def compaction_status(self, topic: TopicName | str) -> dict[str, Any]:
        """Return the state of the compaction of one topic or partition.

        ``status`` is NOT_RUN, RUNNING, SUCCESS or ERROR. ``lastError`` gives the reason of a failure.
        """
        return await self._http.get(topic_path(topic, "compaction"), kind="topic", read=record_with("status"))

    # Statistics

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
        """Return the topic's ledgers and cursors."""
        query = {"metadata": metadata}
        return await self._http.get(topic_path(topic, "internalStats"), kind="topic", read=record, query=query)

    async def internal_info(self, topic: TopicName | str) -> dict[str, Any]:
        """Return the stored ledgers and cursors without loading the topic. Works for a topic that cannot be loaded."""
        return await self._http.get(topic_path(topic, "internal-info"), kind="topic", read=record)

    async def partitioned_internal_stats(self, topic: TopicName | str) -> dict[str, Any]:
        """Return the ledgers and cursors of every partition."""
        return await self._http.get(topic_path(topic, "partitioned-internalStats"), kind="topic", read=record)

    async def last_message_id(self, topic: TopicName | str) -> MessageId:
        return await self._http.get(topic_path(topic, "lastMessageId"), kind="topic", read=made_by(message_id_of))

    async def last_message_id_json(self, topic: TopicName | str) -> dict[str, Any]:
        """Return the last message id like :meth:`last_message_id`, with every field that the broker sent."""
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
        """Return the next ``count`` messages of a subscription without moving it. Fewer if there are no more.

        Markers and messages of uncommitted transactions are left out unless requested. Apache Pulsar creates a missing
        subscription at the beginning of the topic.
        """
        messages: Messages = []
        for place in itertools.count(1):
            path = f"subscription/{encoded_subscription(subscription)}/position/{place}"
            try:
                headers, entry_messages = await self._messages(topic, path)
                if (markers_shown or not is_marker(headers)) and (uncommitted_shown or is_committed(headers)):
                    messages += entry_messages
            except NotFound as error:
                if type(error) is not NotFound:  # the topic or the subscription
                    raise
                break
            if len(messages) >= count:
                break
        return messages[:count]

    async def examine(self, topic: TopicName | str, initial_position: ExaminePosition, number: int) -> Messages:
        """Return the messages of entry ``number``, counted from 1 from the first or back from the last entry."""
        query = {"initialPosition": initial_position, "messagePosition": number}
        return (await self._messages(topic, "examinemessage", query))[1]

    async def message_by_id(self, topic: TopicName | str, ledger: int, entry: int) -> Messages:
        """Return the messages of one entry. Raise NotFound."""
        return (await self._messages(topic, f"ledger/{ledger}/entry/{entry}"))[1]

    async def _messages(
        self, topic: TopicName | str, last: str, query: Mapping[str, object] | None = None
    ) -> tuple[Mapping[str, str], Messages]:
        name = TopicName.parse(str(topic))
        headers, payload = await self._http.fetch(topic_path(name, last), kind="message", query=query)
        return headers, messages_in_answer(headers, payload, name)

    async def message_id_at(self, topic: TopicName | str, time_ms: int) -> dict[str, Any]:
        """Return the position of the first message published at or after a time, as JSON.

        If there is none yet, return the position of the next message.
        """
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
        """Create a subscription at ``position``, by default after the last message. Raise AlreadyExists."""
        body = begin_position(position or LATEST_ID)
        if properties:
            body["properties"] = dict(properties)
        path = subscription_path(topic, subscription)
        await self._http.put(path, body, kind="topic", query={"replicated": replicated})

    async def delete_subscription(self, topic: TopicName | str, subscription: str, *, force: bool = False) -> None:
        """Delete a subscription. Raise PreconditionFailed if a consumer is connected, unless it is forced."""
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
        """Acknowledge messages published more than ``older_than_seconds`` ago.

        Raise Conflict if there is no backlog.
        """
        path = subscription_path(topic, subscription, f"expireMessages/{older_than_seconds}")
        await self._http.post(path, kind="subscription")

    async def expire_upto(
        self, topic: TopicName | str, subscription: str, position: MessageId, *, excluded: bool = False
    ) -> None:
        """Acknowledge everything up to a message. Raise Conflict if it is after the last one.

        With ``excluded`` the entry after it is acknowledged too, as in Apache Pulsar.
        """
        body = reset_position(position) | {"excluded": excluded}
        await self._http.post(subscription_path(topic, subscription, "expireMessages"), body, kind="subscription")

    async def expire_all(self, topic: TopicName | str, older_than_seconds: int) -> None:
        """Acknowledge messages published more than ``older_than_seconds`` ago, for every subscription."""
        await self._http.post(topic_path(topic, f"all_subscription/expireMessages/{older_than_seconds}"), kind="topic")

    async def backlog_size(self, topic: TopicName | str, position: MessageId) -> int:
        """Return the approximate number of bytes after a message of one topic or partition.

        Before the first message this is the size of the whole topic.
        """
        path, body = topic_path(topic, "backlogSize"), reset_position(position)
        return await self._http.request("PUT", path, kind="topic", read=integer, body=body)

    async def analyze_backlog(
        self, topic: TopicName | str, subscription: str, start: MessageId | None = None
    ) -> dict[str, Any]:
        """Return counts of the backlog of a subscription, which the broker reads from ``start`` on.

        For one topic or partition. ``entries`` and ``messages`` are exact unless ``aborted``: then the backlog exceeds
        what the broker reads in one request, and the counts end at ``lastMessageId``.
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
        """Return the topic's own policy; None if the namespace's applies. With ``applied``, return the one in force."""
        policies: InactiveTopicPolicies | None = await self._policies.get(topic, "inactive_topics", applied=applied)
        return policies

    async def set_inactive_topic_policies(self, topic: TopicName | str, policies: InactiveTopicPolicies) -> None:
        await self._policies.set(topic, "inactive_topics", policies)

    async def remove_inactive_topic_policies(self, topic: TopicName | str) -> None:
        await self._policies.remove(topic, "inactive_topics")

    # Replication

    async def replication_clusters(self, topic: TopicName | str, *, applied: bool = False) -> Names | None:
        """Return the topic's own clusters; None if the namespace's apply. With ``applied``, return those in force."""
        clusters: Names | None = await self._policies.get(topic, "replication_clusters", applied=applied)
        return clusters

    async def set_replication_clusters(self, topic: TopicName | str, clusters: Iterable[str]) -> None:
        await self._policies.set(topic, "replication_clusters", clusters)

    async def remove_replication_clusters(self, topic: TopicName | str) -> None:
        await self._policies.remove(topic, "replication_clusters")

    async def replication_status(self, topic: TopicName | str) -> Records:
        """Return the progress of replication to each remote cluster, and what blocks it.

        Raise NotSupported unless the broker is Interpulse.
        """
        return await self._http.get(topic_path(topic, "replication/status"), kind="topic", read=records)


def _partition_counts(body: Any) -> dict[str, int | None]:
    """Read names with counts, or names only."""
    return each(optional(integer))(body) if isinstance(body, dict) else dict.fromkeys(names(body))


def _last_of_partitions(body: Mapping[str, Any]) -> dict[int, MessageId]:
    return {int(index): message_id_of(last) for index, last in body.items()}


def _left_out(publishers: bool, consumers: bool) -> dict[str, bool]:
    """Return the query flags that exclude entries. Omit the defaults, which older brokers do not know."""
    asked = {"excludePublishers": publishers, "excludeConsumers": consumers}
    return {key: wanted for key, wanted in asked.items() if wanted}
