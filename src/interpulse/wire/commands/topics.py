"""Partition metadata, lookup, lists of topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands.encoding import AnswerTemplate, encode, envelope, error_code, pairs, varint


def partitioned_metadata(request_id: int, topic: str, *, create: bool = True) -> bytes:
    """Ask for the partition count.

    Send ``create=False`` only to brokers that announced the PIP-344 flag; older ones would create the topic.
    """
    return encode(
        pb.CommandPartitionedTopicMetadata(
            topic=topic, request_id=request_id, metadata_auto_creation_enabled=None if create else False
        )
    )


def partitioned_metadata_response(request_id: int, partitions: int) -> bytes:
    """Answer with the partition count, 0 for a topic that is not partitioned."""
    return partitioned_metadata_answer(partitions).frame(request_id)


@lru_cache(maxsize=100)
def partitioned_metadata_answer(partitions: int) -> AnswerTemplate:
    """Return `partitioned_metadata_response` as a template for any request."""
    before = pb.CommandPartitionedTopicMetadataResponse(partitions=partitions)
    after = pb.CommandPartitionedTopicMetadataResponse(response=pb.CommandPartitionedTopicMetadataResponse.Success)
    tag = varint(pb.CommandPartitionedTopicMetadataResponse.REQUEST_ID_FIELD_NUMBER << 3)
    return AnswerTemplate(
        envelope(pb.CommandPartitionedTopicMetadataResponse),
        before.SerializePartialToString() + tag,
        after.SerializePartialToString(),
    )


def partitioned_metadata_error(request_id: int, code: int, message: str) -> bytes:
    return encode(
        pb.CommandPartitionedTopicMetadataResponse(
            request_id=request_id,
            response=pb.CommandPartitionedTopicMetadataResponse.Failed,
            error=error_code(code),
            message=message,
        )
    )


def lookup(
    request_id: int,
    topic: str,
    *,
    authoritative: bool = False,
    listener_name: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> bytes:
    return encode(
        pb.CommandLookupTopic(
            topic=topic,
            request_id=request_id,
            authoritative=authoritative,
            advertised_listener_name=listener_name,
            properties=pairs(properties or {}),
        )
    )


def lookup_response(
    request_id: int,
    *,
    broker_url: str,
    broker_url_tls: str = "",
    redirect: bool = False,
    authoritative: bool = True,
    proxy_through_service_url: bool = False,
) -> bytes:
    """Answer with the broker that serves the topic or, with ``redirect``, the broker to ask next."""
    answer = lookup_answer(
        broker_url=broker_url,
        broker_url_tls=broker_url_tls,
        redirect=redirect,
        authoritative=authoritative,
        proxy_through_service_url=proxy_through_service_url,
    )
    return answer.frame(request_id)


@lru_cache(maxsize=100)
def lookup_answer(
    *, broker_url: str, broker_url_tls: str, redirect: bool, authoritative: bool, proxy_through_service_url: bool
) -> AnswerTemplate:
    """Return `lookup_response` as a template for any request, and for all topics of a broker."""
    kind = pb.CommandLookupTopicResponse.Redirect if redirect else pb.CommandLookupTopicResponse.Connect
    before = pb.CommandLookupTopicResponse(
        brokerServiceUrl=broker_url or None, brokerServiceUrlTls=broker_url_tls or None, response=kind
    )
    after = pb.CommandLookupTopicResponse(
        authoritative=authoritative, proxy_through_service_url=proxy_through_service_url
    )
    tag = varint(pb.CommandLookupTopicResponse.REQUEST_ID_FIELD_NUMBER << 3)
    return AnswerTemplate(
        envelope(pb.CommandLookupTopicResponse),
        before.SerializePartialToString() + tag,
        after.SerializePartialToString(),
    )


def lookup_error(request_id: int, code: int, message: str) -> bytes:
    return encode(
        pb.CommandLookupTopicResponse(
            request_id=request_id,
            response=pb.CommandLookupTopicResponse.Failed,
            error=error_code(code),
            message=message,
        )
    )


def batch_lookup(
    request_id: int,
    topics: Iterable[str],
    *,
    authoritative: bool = False,
    listener_name: str | None = None,
    create_if_missing: bool = True,
    expand_partitions: bool = False,
) -> bytes:
    """Look up many topics (PIP-35).

    Send this only to brokers that announced supports_batch_lookup; others drop the connection.
    """
    return encode(
        pb.CommandBatchLookupTopic(
            topics=topics,
            request_id=request_id,
            authoritative=authoritative,
            advertised_listener_name=listener_name,
            create_if_missing=create_if_missing,
            expand_partitions=expand_partitions,
        )
    )


def batch_lookup_response(
    request_id: int,
    *,
    groups: Iterable[pb.BatchLookupGroup] = (),
    failures: Iterable[pb.BatchLookupFailure] = (),
    partitions: Mapping[str, int] | None = None,
) -> bytes:
    """Answer a batch lookup. Every requested topic appears once, in a group or in a failure."""
    counts = [pb.BatchLookupPartitions(topic=topic, partitions=count) for topic, count in (partitions or {}).items()]
    return encode(
        pb.CommandBatchLookupTopicResponse(request_id=request_id, groups=groups, failures=failures, partitions=counts)
    )


def batch_lookup_error(request_id: int, code: int, message: str) -> bytes:
    """Refuse a batch lookup as a whole."""
    return encode(pb.CommandBatchLookupTopicResponse(request_id=request_id, error=error_code(code), message=message))


def get_topics_of_namespace(
    request_id: int,
    namespace: str,
    *,
    mode: pb.CommandGetTopicsOfNamespace.Mode.ValueType = pb.CommandGetTopicsOfNamespace.ALL,
    topics_pattern: str | None = None,
    topics_hash: str | None = None,
    properties: Mapping[str, str] = {},
) -> bytes:
    return encode(
        pb.CommandGetTopicsOfNamespace(
            request_id=request_id,
            namespace=namespace,
            mode=mode,
            topics_pattern=topics_pattern,
            topics_hash=topics_hash,
            properties=pairs(properties),
        )
    )


def get_topics_of_namespace_response(
    request_id: int, topics: Iterable[str], *, topics_hash: str, filtered: bool = False, changed: bool = True
) -> bytes:
    """Answer with the topics of a namespace. ``changed=False``, without topics: the hash of the request still holds."""
    return encode(
        pb.CommandGetTopicsOfNamespaceResponse(
            request_id=request_id, topics=topics, filtered=filtered, topics_hash=topics_hash, changed=changed
        )
    )


def watch_topic_list(
    request_id: int, watcher_id: int, namespace: str, topics_pattern: str, *, topics_hash: str | None = None
) -> bytes:
    """Watch topics. Send this only to brokers that announced supports_topic_watchers."""
    return encode(
        pb.CommandWatchTopicList(
            request_id=request_id,
            watcher_id=watcher_id,
            namespace=namespace,
            topics_pattern=topics_pattern,
            topics_hash=topics_hash,
        )
    )


def watch_topic_list_close(request_id: int, watcher_id: int) -> bytes:
    return encode(pb.CommandWatchTopicListClose(request_id=request_id, watcher_id=watcher_id))


def watch_topic_list_success(request_id: int, watcher_id: int, topics: Iterable[str], *, topics_hash: str) -> bytes:
    return encode(
        pb.CommandWatchTopicListSuccess(
            request_id=request_id, watcher_id=watcher_id, topic=topics, topics_hash=topics_hash
        )
    )


def watch_topic_update(watcher_id: int, *, new: Iterable[str], deleted: Iterable[str], topics_hash: str) -> bytes:
    return encode(
        pb.CommandWatchTopicUpdate(
            watcher_id=watcher_id, new_topics=new, deleted_topics=deleted, topics_hash=topics_hash
        )
    )
