"""Admin calls for topics and their subscriptions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

from interpulse.client.admin.calls import ask, send
from interpulse.client.admin.messages import is_committed, is_marker, messages_in_answer
from interpulse.client.admin.topic_policies import TopicPoliciesAdmin
from interpulse.client.json_readers import (
    boolean,
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
from interpulse.model.ids import LATEST, MessageId, Position
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName, TopicName
from interpulse.model.operations import Messages as MessageOperations
from interpulse.model.operations import Operation, Replication, Subscriptions, Topics
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
        pairs = ",".join(f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in (properties or {}).items())
        query = {"includeSystemTopic": system_included, "bundle": bundle, "properties": pairs or None}
        return await self._list(Topics.LIST, namespace, domains, query)

    async def list_partitioned(
        self,
        namespace: NamespaceName | str,
        *,
        domains: Iterable[Domain] = _BOTH_DOMAINS,
        system_included: bool = False,
    ) -> Names:
        """Return the full base names of the partitioned topics."""
        return await self._list(Topics.LIST_PARTITIONED, namespace, domains, {"includeSystemTopic": system_included})

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
            counts |= await ask(
                self._http, Topics.LIST_PARTITIONED, domain, namespace, read=_partition_counts, query=query
            )
        return counts

    async def _list(
        self,
        operation: Operation,
        namespace: NamespaceName | str,
        domains: Iterable[Domain],
        query: Mapping[str, object],
    ) -> Names:
        topics: Names = []
        for domain in domains:
            topics += await ask(self._http, operation, domain, namespace, read=names, query=query)
        return topics

    # Existence and partitions

    async def create(self, topic: TopicName | str, properties: Mapping[str, str] | None = None) -> None:
        """Create a non-partitioned topic. Raises AlreadyExists."""
        await send(self._http, Topics.CREATE, topic, body=dict(properties or {}))

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
        if not properties:
            await send(self._http, Topics.CREATE_PARTITIONED, topic, query=query, body=partitions)
            return
        path, body = (
            Topics.CREATE_PARTITIONED.path_of(topic),
            {"partitions": partitions, "properties": dict(properties)},
        )
        await self._http.request(
            "PUT", path, kind="namespace", read=ignored, query=query, body=body, content_type=_METADATA_JSON
        )

    async def expand(
        self, topic: TopicName | str, partitions: int, *, local_only: bool = False, force: bool = False
    ) -> None:
        """Increase the number of partitions to ``partitions``. Raise Conflict if the topic is not partitioned."""
        query = {"updateLocalTopicOnly": local_only, "force": force}
        await send(self._http, Topics.EXPAND, topic, query=query, body=partitions)

    async def create_missed_partitions(self, topic: TopicName | str) -> None:
        """Create the partitions that the metadata counts but that are not stored."""
        await send(self._http, Topics.CREATE_MISSED_PARTITIONS, topic)

    async def partitioned_metadata(self, topic: TopicName | str, *, create: bool = False) -> PartitionedTopicMetadata:
        """Return the partition metadata of a topic. ``partitions == 0`` means not partitioned. Raise TopicNotFound.

        With ``create`` a missing topic is created if the cluster's policies allow it (PIP-344).
        """
        read, query = made_by(PartitionedTopicMetadata.from_json), {"checkAllowAutoCreation": create}
        return await ask(self._http, Topics.GET_PARTITIONS, topic, read=read, query=query)

    async def delete(self, topic: TopicName | str, *, force: bool = False, schema_deleted: bool = True) -> None:
        """Delete one topic or one partition. Raise PreconditionFailed if it is in use, unless it is forced."""
        query = {"force": force, "deleteSchema": schema_deleted}
        await send(self._http, Topics.DELETE, topic, query=query)

    async def delete_partitioned(
        self, topic: TopicName | str, *, force: bool = False, schema_deleted: bool = True
    ) -> None:
        """Delete a partitioned topic with all its partitions."""
        query = {"force": force, "deleteSchema": schema_deleted}
        await send(self._http, Topics.DELETE_PARTITIONED, topic, query=query)

    async def truncate(self, topic: TopicName | str) -> None:
        """Move every subscription to the end and delete the messages. Apache Pulsar keeps those of the last ledger."""
        await send(self._http, Topics.TRUNCATE, topic)

    async def trim(self, topic: TopicName | str) -> None:
        """Delete the messages that no subscription and no policy retains, in all partitions, now."""
        await send(self._http, Topics.TRIM, topic)

    async def unload(self, topic: TopicName | str) -> None:
        """Unload the topic from its broker. Clients reconnect and load it again."""
        await send(self._http, Topics.UNLOAD, topic)

    async def terminate(self, topic: TopicName | str) -> MessageId:
        """Terminate the topic: it accepts no more messages. Return the id of its last message."""
        return await ask(self._http, Topics.TERMINATE, topic, read=made_by(_message_id_of))

    async def terminate_partitioned(self, topic: TopicName | str) -> dict[int, MessageId]:
        """Terminate every partition. Return the id of the last message by partition index."""
        return await ask(self._http, Topics.TERMINATE_PARTITIONED, topic, read=made_by(_last_of_partitions))

    # Properties

    async def properties(self, topic: TopicName | str) -> dict[str, str]:
        """Return the properties of a topic. Raise TopicNotFound."""
        return await ask(self._http, Topics.GET_PROPERTIES, topic, read=each(string))

    async def update_properties(self, topic: TopicName | str, properties: Mapping[str, str]) -> None:
        """Set these properties and keep the others."""
        await send(self._http, Topics.UPDATE_PROPERTIES, topic, body=dict(properties))

    async def remove_property(self, topic: TopicName | str, key: str) -> None:
        """Remove a property, if the topic has it."""
        await send(self._http, Topics.REMOVE_PROPERTY, topic, query={"key": key})

    # Compaction

    async def compact(self, topic: TopicName | str) -> None:
        """Start compaction of the topic, or of all its partitions. Raise Conflict while it is running."""
        await send(self._http, Topics.COMPACT, topic)

    async def compaction_status(self, topic: TopicName | str) -> dict[str, Any]:
        """Return the state of the compaction of one topic or partition.

        ``status`` is NOT_RUN, RUNNING, SUCCESS or ERROR. ``lastError`` gives the reason of a failure.
        """
        return await ask(self._http, Topics.GET_COMPACTION, topic, read=record_with("status"))

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
        query = _stats_query(
            precise_backlog, backlog_size, earliest_time_in_backlog, exclude_publishers, exclude_consumers
        )
        return await ask(self._http, Topics.GET_STATS, topic, read=record, query=query)

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
        query = _stats_query(
            precise_backlog,
            backlog_size,
            earliest_time_in_backlog,
            exclude_publishers,
            exclude_consumers,
            per_partition,
        )
        return await ask(self._http, Topics.GET_PARTITIONED_STATS, topic, read=record, query=query)

    async def internal_stats(self, topic: TopicName | str, *, metadata: bool = False) -> dict[str, Any]:
        """Return the topic's ledgers and cursors."""
        return await ask(self._http, Topics.GET_INTERNAL_STATS, topic, read=record, query={"metadata": metadata})

    async def internal_info(self, topic: TopicName | str) -> dict[str, Any]:
        """Return the stored ledgers and cursors without loading the topic. Works for a topic that cannot be loaded."""
        return await ask(self._http, Topics.GET_INTERNAL_INFO, topic, read=record)

    async def partitioned_internal_stats(self, topic: TopicName | str) -> dict[str, Any]:
        """Return the ledgers and cursors of every partition."""
        return await ask(self._http, Topics.GET_PARTITIONED_INTERNAL_STATS, topic, read=record)

    async def last_message_id(self, topic: TopicName | str) -> MessageId:
        return await ask(self._http, MessageOperations.GET_LAST_ID, topic, read=made_by(_message_id_of))

    async def last_message_id_json(self, topic: TopicName | str) -> dict[str, Any]:
        """Return the last message id like :meth:`last_message_id`, with every field that the broker sent."""
        return await ask(self._http, MessageOperations.GET_LAST_ID, topic, read=record)

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
            try:
                headers, entry_messages = await self._messages(MessageOperations.PEEK, topic, subscription, place)
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
        return (await self._messages(MessageOperations.EXAMINE, topic, query=query))[1]

    async def message_by_id(self, topic: TopicName | str, ledger: int, entry: int) -> Messages:
        """Return the messages of one entry. Raise NotFound."""
        return (await self._messages(MessageOperations.GET, topic, ledger, entry))[1]

    async def _messages(
        self, operation: Operation, topic: TopicName | str, *names: object, query: Mapping[str, object] | None = None
    ) -> tuple[Mapping[str, str], Messages]:
        path = operation.path_of(topic, *names)
        headers, payload = await self._http.fetch(path, kind=operation.subject, query=query)
        return headers, messages_in_answer(headers, payload, TopicName.parse(str(topic)))

    async def message_id_at(self, topic: TopicName | str, time_ms: int) -> dict[str, Any]:
        """Return the position of the first message published at or after a time, as JSON.

        If there is none yet, return the position of the next message.
        """
        return await ask(self._http, MessageOperations.GET_ID_AT, topic, time_ms, read=record)

    # Subscriptions

    async def subscriptions(self, topic: TopicName | str) -> Names:
        return await ask(self._http, Subscriptions.LIST, topic, read=names)

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
        body = _begin_position(position or MessageId(*LATEST))
        if properties:
            body["properties"] = dict(properties)
        query = {"replicated": replicated}
        await send(self._http, Subscriptions.CREATE, topic, subscription, query=query, body=body)

    async def delete_subscription(self, topic: TopicName | str, subscription: str, *, force: bool = False) -> None:
        """Delete a subscription. Raise PreconditionFailed if a consumer is connected, unless it is forced."""
        await send(self._http, Subscriptions.DELETE, topic, subscription, query={"force": force})

    async def reset_cursor_to_time(self, topic: TopicName | str, subscription: str, time_ms: int) -> None:
        """Continue with the first message published at or after ``time_ms`` (milliseconds since 1970)."""
        await send(self._http, Subscriptions.RESET_TO_TIME, topic, subscription, time_ms)

    async def reset_cursor_to_message(
        self, topic: TopicName | str, subscription: str, position: MessageId, *, excluded: bool = False
    ) -> None:
        """Continue with the message at ``position``, or after it if ``excluded``."""
        body = (_reset_position if excluded else _begin_position)(position) | {"excluded": excluded}
        await send(self._http, Subscriptions.RESET_TO_MESSAGE, topic, subscription, body=body)

    async def skip(self, topic: TopicName | str, subscription: str, count: int) -> None:
        """Acknowledge the next ``count`` messages of the subscription."""
        await send(self._http, Subscriptions.SKIP, topic, subscription, count)

    async def skip_all(self, topic: TopicName | str, subscription: str) -> None:
        """Acknowledge the whole backlog of the subscription."""
        await send(self._http, Subscriptions.SKIP_ALL, topic, subscription)

    async def expire(self, topic: TopicName | str, subscription: str, older_than_seconds: int) -> None:
        """Acknowledge messages published more than ``older_than_seconds`` ago.

        Raise Conflict if there is no backlog.
        """
        await send(self._http, Subscriptions.EXPIRE, topic, subscription, older_than_seconds)

    async def expire_upto(
        self, topic: TopicName | str, subscription: str, position: MessageId, *, excluded: bool = False
    ) -> None:
        """Acknowledge everything up to a message. Raise Conflict if it is after the last one.

        With ``excluded`` the entry after it is acknowledged too, as in Apache Pulsar.
        """
        body = _reset_position(position) | {"excluded": excluded}
        await send(self._http, Subscriptions.EXPIRE_UPTO, topic, subscription, body=body)

    async def expire_all(self, topic: TopicName | str, older_than_seconds: int) -> None:
        """Acknowledge messages published more than ``older_than_seconds`` ago, for every subscription."""
        await send(self._http, Subscriptions.EXPIRE_ALL, topic, older_than_seconds)

    async def backlog_size(self, topic: TopicName | str, position: MessageId) -> int:
        """Return the approximate number of bytes after a message of one topic or partition.

        Before the first message this is the size of the whole topic.
        """
        return await ask(
            self._http, Subscriptions.GET_BACKLOG_SIZE, topic, read=integer, body=_reset_position(position)
        )

    async def analyze_backlog(
        self, topic: TopicName | str, subscription: str, start: MessageId | None = None
    ) -> dict[str, Any]:
        """Return counts of the backlog of a subscription, which the broker reads from ``start`` on.

        For one topic or partition. ``entries`` and ``messages`` are exact unless ``aborted``: then the backlog exceeds
        what the broker reads in one request, and the counts end at ``lastMessageId``.
        """
        body = None if start is None else _begin_position(start)
        return await ask(self._http, Subscriptions.ANALYZE_BACKLOG, topic, subscription, read=record, body=body)

    async def subscription_properties(self, topic: TopicName | str, subscription: str) -> dict[str, str]:
        return await ask(self._http, Subscriptions.GET_PROPERTIES, topic, subscription, read=each(string))

    async def set_subscription_properties(
        self, topic: TopicName | str, subscription: str, properties: Mapping[str, str]
    ) -> None:
        """Replace all properties of a subscription."""
        await send(self._http, Subscriptions.SET_PROPERTIES, topic, subscription, body=dict(properties))

    async def subscription_replicated(self, topic: TopicName | str, subscription: str) -> dict[str, bool]:
        """Return, for a topic or for each partition, True if the subscription is marked as replicated."""
        return await ask(self._http, Subscriptions.IS_REPLICATED, topic, subscription, read=each(boolean))

    async def set_subscription_replicated(self, topic: TopicName | str, subscription: str, replicated: bool) -> None:
        """Mark a subscription as replicated, or remove the mark. Raise Conflict if the broker has this turned off."""
        await send(self._http, Subscriptions.SET_REPLICATED, topic, subscription, body=replicated)

    async def acknowledge(
        self,
        topic: TopicName | str,
        subscription: str,
        *,
        resets: int | None = None,
        mark_delete: Position | None = None,
        ranges: Iterable[tuple[int, int, int]] = (),
        masks: Iterable[tuple[int, int, Sequence[int]]] = (),
        reset_as: int | None = None,
    ) -> int:
        """Acknowledge entries as if consumers had; return the number of entries of which something is new.

        For one topic or partition of Interpulse, durable on return. ``mark_delete`` stands for itself and everything
        before it, a range is ledger, first entry and last entry. A mask is ledger, entry and the 64-bit words of a
        batch, in which bit i is 1 while message i is not acknowledged. Raise Conflict if the subscription was reset
        more or less often than ``resets``, and InvalidRequest for a position that is not in the log.

        ``reset_as`` carries a reset of the subscription on another cluster: only what is up to ``mark_delete`` remains
        acknowledged, consumers connect again, and the subscription counts that many resets.
        """
        body = {
            "resets": resets,
            "resetAs": reset_as,
            "markDelete": None if mark_delete is None else str(mark_delete),
            "ranges": [list(each) for each in ranges],
            "masks": [[ledger, entry, list(words)] for ledger, entry, words in masks],
        }
        answer = await ask(
            self._http, Subscriptions.ACKNOWLEDGE, topic, subscription, read=record_with("new"), body=body
        )
        return int(answer["new"])

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
        return await ask(self._http, Replication.GET_STATUS_OF_TOPIC, topic, read=records)


def _partition_counts(body: Any) -> dict[str, int | None]:
    """Read names with counts, or names only."""
    return each(optional(integer))(body) if isinstance(body, dict) else dict.fromkeys(names(body))


def _last_of_partitions(body: Mapping[str, Any]) -> dict[int, MessageId]:
    return {int(index): _message_id_of(last) for index, last in body.items()}


def _stats_query(
    precise_backlog: bool,
    backlog_size: bool,
    earliest_time_in_backlog: bool,
    exclude_publishers: bool,
    exclude_consumers: bool,
    per_partition: bool | None = None,
) -> dict[str, object]:
    """Return the query of a request for statistics. Omit later flags by default, which older brokers do not know."""
    return {
        "getPreciseBacklog": precise_backlog,
        "subscriptionBacklogSize": backlog_size,
        "getEarliestTimeInBacklog": earliest_time_in_backlog,
        "perPartition": per_partition,
        "excludePublishers": exclude_publishers or None,
        "excludeConsumers": exclude_consumers or None,
    }


def _reset_position(position: MessageId) -> dict[str, Any]:
    """Return a message id as a request body."""
    return {
        "ledgerId": position.ledger,
        "entryId": position.entry,
        "partitionIndex": position.partition,
        "batchIndex": position.batch_index,
    }


def _begin_position(position: MessageId) -> dict[str, Any]:
    """Return a message id as the body of a request to start at that message.

    A message sent in chunks starts with its first chunk.
    """
    first = position.first_chunk or position.position
    return _reset_position(position) | {"ledgerId": first.ledger, "entryId": first.entry}


def _message_id_of(body: Mapping[str, Any]) -> MessageId:
    """Return the message id in an answer."""
    return MessageId(
        int(body["ledgerId"]),
        int(body["entryId"]),
        int(body.get("partitionIndex", -1)),
        int(body.get("batchIndex", -1)),
    )
