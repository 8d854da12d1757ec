"""The records of the table's rows, as the keys and values of a metadata store, and back.

The keys are Pulsar's own, so the same records go into our store and into that of a stopped real cluster; only the
record of a topic without entries is written differently.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from interpulse.broker import metadata_paths as keys
from interpulse.model.names import NamespaceName, TopicName, decode_local_name
from interpulse.storage.api import MetadataStore
from tests.front_ends.rows import (
    ABOVE,
    DELETED,
    FOREIGN,
    FULL,
    NOWHERE,
    OFF,
    ON,
    PARTITIONS_MAX,
    REMOTE,
    TENANT,
    TWO,
    Case,
)

OUR_EMPTY_TOPIC: Final = b'{"ledgers": [], "properties": {}}'
REAL_EMPTY_TOPIC: Final = b""  # protobuf: no ledgers

LIVING: Final = (ON, OFF, TWO, ABOVE, FULL)
"""Namespaces in which topics can be opened."""
BEYOND: Final = "beyond"
"""The other cluster."""
_NO_SERVER: Final = ("pulsar://127.0.0.1:1", "http://127.0.0.1:1")
_WHOLE: Final = {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1}


def prepared(
    cases: Iterable[Case], cluster: str, empty_topic: bytes, beyond: tuple[str, str] | None = None
) -> dict[str, bytes]:
    """Everything that has to be stored before the questions are asked.

    ``beyond`` are the addresses of the other cluster, service and web; without, no server answers there.
    """
    stored = _clusters(cluster, beyond or _NO_SERVER) | _policies(cluster)
    stored |= {keys.topic_record(first_topic(namespace)): empty_topic for namespace in LIVING}
    for case in cases:
        stored |= _records(case, case.row.there, empty_topic)
    return stored


def prepared_beyond(cases: Iterable[Case], empty_topic: bytes) -> dict[str, bytes]:
    """What has to be stored in the other cluster."""
    policies = {"replication_clusters": [BEYOND], "bundles": _WHOLE}
    stored = {keys.namespace_policies(NamespaceName(TENANT, REMOTE)): _json(policies)}
    stored |= {keys.tenant(TENANT): _json({"adminRoles": [], "allowedClusters": [BEYOND]})}
    for case in cases:
        stored |= _records(case, case.row.beyond, empty_topic)
    return stored


def _records(case: Case, records: str, empty_topic: bytes) -> dict[str, bytes]:
    return dict(_stored(case, record, empty_topic) for record in records.split())


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
    return keys.partitioned_topic(topic), _json(metadata)


def _clusters(cluster: str, beyond: tuple[str, str]) -> dict[str, bytes]:
    service_url, web_url = beyond
    return {
        keys.tenant(TENANT): _json({"adminRoles": [], "allowedClusters": [cluster, BEYOND]}),
        keys.cluster(BEYOND): _json({"serviceUrl": web_url, "brokerServiceUrl": service_url}),
    }


def _policies(cluster: str) -> dict[str, bytes]:
    def partitioned(count: int) -> dict[str, Any]:
        return {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": count}

    policies: dict[str, dict[str, Any]] = {
        ON: {},
        OFF: {"autoTopicCreationOverride": {"allowAutoTopicCreation": False}},
        TWO: {"autoTopicCreationOverride": partitioned(2)},
        ABOVE: {"autoTopicCreationOverride": partitioned(PARTITIONS_MAX + 1)},
        FULL: {"autoTopicCreationOverride": partitioned(2), "max_topics_per_namespace": 1},
        REMOTE: {"autoTopicCreationOverride": partitioned(2), "replication_clusters": [cluster, BEYOND]},
        FOREIGN: {"replication_clusters": [BEYOND]},
        NOWHERE: {"replication_clusters": []},
        DELETED: {"deleted": True},
    }
    return {
        keys.namespace_policies(NamespaceName(TENANT, name)): _json(
            {"replication_clusters": [cluster], "bundles": _WHOLE} | special
        )
        for name, special in policies.items()
    }


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


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
