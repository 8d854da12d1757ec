"""The records of the table's rows, as the keys and values of a metadata store, and back.

The keys are Pulsar's own, so the same records go into our store and into that of a stopped real cluster; only the
record of a topic without entries is written differently.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from interpulse.broker import keys
from interpulse.model.names import NamespaceName, TopicName, decode_local_name
from interpulse.storage.api import MetadataStore
from tests.doors.rows import ABOVE, DELETED, FOREIGN, FULL, OFF, ON, PARTITIONS_MAX, TENANT, TWO, Case

__all__ = [
    "LIVING",
    "OUR_EMPTY_TOPIC",
    "REAL_EMPTY_TOPIC",
    "directories",
    "first_topic",
    "found",
    "prepared",
    "stored_below",
]

OUR_EMPTY_TOPIC: Final = b'{"ledgers": [], "properties": {}}'
REAL_EMPTY_TOPIC: Final = b""  # protobuf: no ledgers

LIVING: Final = (ON, OFF, TWO, ABOVE, FULL)
"""Namespaces in which topics can be opened."""
_OTHER_CLUSTER: Final = "elsewhere"


def prepared(cases: Iterable[Case], cluster: str, empty_topic: bytes) -> dict[str, bytes]:
    """Everything that has to be stored before the questions are asked."""
    stored = _namespaces(cluster)
    stored |= {keys.topic_record(first_topic(namespace)): empty_topic for namespace in LIVING}
    for case in cases:
        for record in case.row.there.split():
            stored |= [_stored(case, record, empty_topic)]
    return stored


def first_topic(namespace: str) -> TopicName:
    """A topic that is there before any other; the only one that FULL has room for."""
    return TopicName.of("persistent", TENANT, namespace, "first")


def _stored(case: Case, record: str, empty_topic: bytes) -> tuple[str, bytes]:
    name, mark, count = record.partition("=")
    topic = case.named(name)
    if not mark:
        return keys.topic_record(topic), empty_topic
    metadata: dict[str, Any] = {"partitions": int(count.rstrip("!+")), "deleted": count.endswith("!")}
    if count.endswith("+"):
        metadata["properties"] = {"p": "v"}
    return keys.partitioned_topic(topic), json.dumps(metadata).encode()


def _namespaces(cluster: str) -> dict[str, bytes]:
    def partitioned(count: int) -> dict[str, Any]:
        return {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": count}

    policies: dict[str, dict[str, Any]] = {
        ON: {},
        OFF: {"autoTopicCreationOverride": {"allowAutoTopicCreation": False}},
        TWO: {"autoTopicCreationOverride": partitioned(2)},
        ABOVE: {"autoTopicCreationOverride": partitioned(PARTITIONS_MAX + 1)},
        FULL: {"autoTopicCreationOverride": partitioned(2), "max_topics_per_namespace": 1},
        FOREIGN: {"replication_clusters": [_OTHER_CLUSTER]},
        DELETED: {"deleted": True},
    }
    whole = {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1}
    tenant = {"adminRoles": [], "allowedClusters": [cluster, _OTHER_CLUSTER]}
    elsewhere = {"serviceUrl": "http://127.0.0.1:1", "brokerServiceUrl": "pulsar://127.0.0.1:1"}
    stored = {keys.tenant(TENANT): tenant, keys.cluster(_OTHER_CLUSTER): elsewhere}
    for name, special in policies.items():
        common = {"replication_clusters": [cluster], "bundles": whole}
        stored[keys.namespace_policies(NamespaceName(TENANT, name))] = common | special
    return {key: json.dumps(value).encode() for key, value in stored.items()}


def directories(case: Case) -> tuple[str, str]:
    """Where the records of a case lie: those of topics, and the partition metadata."""
    namespace, domain = case.base.namespace_name, case.base.domain
    return keys.topic_records(namespace, domain), keys.partitioned_topics(namespace, domain)


def found(store: Mapping[str, bytes], cases: Iterable[Case]) -> dict[str, set[str]]:
    """What a store holds of each case, by its id, in the short hand of the table."""
    records: dict[str, set[str]] = {}
    for key, value in store.items():
        kind, _, log_name = key.removeprefix("/admin").removeprefix("/").partition("/")
        if kind not in ("managed-ledgers", "partitioned-topics") or log_name.count("/") != 3:
            continue
        place, _, encoded = log_name.rpartition("/")
        base, dot, suffix = decode_local_name(encoded).rpartition(".")
        short = "x" + suffix.replace(" ", "+") + (_count(value) if kind == "partitioned-topics" else "")
        records.setdefault(f"{place}/{base}{dot}", set()).add(short)
    return {case.id: records.get(f"{_place(case.base)}/{case.base.local_name}", set()) for case in cases}


async def stored_below(store: MetadataStore, key: str, *, depth: int = 20) -> dict[str, bytes]:
    """Keys and values below ``key``, so many levels deep."""
    below = [f"{key.rstrip('/')}/{child}" for child in await store.children(key)]
    values = {name: each.value for name, each in (await store.get_many(below)).items()}
    if depth > 1:
        for child in below:
            values |= await stored_below(store, child, depth=depth - 1)
    return values


def _place(base: TopicName) -> str:
    return base.log_name.rpartition("/")[0]


def _count(value: bytes) -> str:
    metadata = json.loads(value)
    marks = "!" * bool(metadata.get("deleted")) + "+" * bool(metadata.get("properties"))
    return f"={metadata['partitions']}{marks}"
