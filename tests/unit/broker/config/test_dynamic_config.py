"""Settings that change while the broker runs."""

from __future__ import annotations

import asyncio
import json

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig, dynamic_keys, settings_by_key
from interpulse.broker.config.dynamic_config import DynamicConfig
from interpulse.broker.config.pulsar_keys import PULSAR_KEYS, READ_AT_START, WITHOUT_EFFECT
from interpulse.model.errors import MetadataError, PreconditionFailed
from interpulse.model.not_offered import NotOffered
from interpulse.storage.api import Put
from interpulse.storage.metadata.session_bounded import session_lost
from tests.support.memory_storage import MemoryMetadataStore
from tests.support.waiting import eventually

STARTUP = BrokerConfig(default_num_partitions=8)


@pytest.fixture
def store() -> MemoryMetadataStore:
    return MemoryMetadataStore()


async def test_set_takes_effect_at_once_and_is_announced(store: MemoryMetadataStore) -> None:
    dynamic = DynamicConfig(store, STARTUP)
    seen: list[BrokerConfig] = []
    dynamic.watch(seen.append)
    await dynamic.set("allowAutoTopicCreation", "false")
    assert dynamic.config.allow_auto_topic_creation is False
    assert seen == [dynamic.config]
    assert await dynamic.values() == {"allowAutoTopicCreation": "false"}


@pytest.mark.parametrize(("failure", "errors"), [(session_lost(), 0), (MetadataError("the record is torn"), 1)])
async def test_change_when_the_session_is_lost_then_waits_for_the_next_call_of_the_watch(
    store: MemoryMetadataStore,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: MetadataError,
    errors: int,
) -> None:
    dynamic = DynamicConfig(store, STARTUP)
    follow = dynamic.follow()

    async def fail(key: str) -> None:
        monkeypatch.undo()
        raise failure

    monkeypatch.setattr(store, "get", fail)
    change = [Put(keys.CONFIGURATION, b'{"defaultNumPartitions": "3"}')]
    await store.commit(change)
    await asyncio.sleep(0)
    assert dynamic.config == STARTUP
    assert [record.levelname for record in caplog.records] == ["ERROR"] * errors
    await store.commit(change)
    await eventually(lambda: dynamic.config.default_num_partitions == 3)
    follow()


async def test_set_survives_a_restart_and_delete_goes_back_to_the_start(store: MemoryMetadataStore) -> None:
    await DynamicConfig(store, STARTUP).set("defaultNumPartitions", "3")
    restarted = DynamicConfig(store, STARTUP)
    await restarted.load()
    assert restarted.config.default_num_partitions == 3
    await restarted.delete("defaultNumPartitions")
    assert restarted.config == STARTUP


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("clusterName", "x", "non-dynamic configuration clusterName"),
        ("allowAutoTopicCreate", "true", "nearest dynamic one is allowAutoTopicCreation"),
        ("foo", "true", "unknown configuration foo; dynamic are: allowAuto.*, supportsBatchLookup"),
        ("managedLedgerCacheSizeMB", "64", "managedLedgerCacheSizeMB at run time: it is read when the broker starts"),
        ("defaultNumPartitions", "-1", "must be at least 1"),
        ("allowAutoTopicCreationType", "PARTITIONED", "must be one of"),
    ],
)
async def test_set_when_refused_changes_nothing(store: MemoryMetadataStore, key: str, value: str, message: str) -> None:
    dynamic = DynamicConfig(store, STARTUP)
    with pytest.raises(PreconditionFailed, match=message):
        await dynamic.set(key, value)
    assert dynamic.config == STARTUP
    assert await dynamic.values() == {}


async def test_set_when_it_has_no_effect_here_then_is_kept_with_a_warning(
    store: MemoryMetadataStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Tools go on, and real brokers of the same cluster act on it."""
    key, value = "loadBalancerSheddingExcludedNamespaces", "my-tenant/my-namespace"
    dynamic = DynamicConfig(store, STARTUP)
    await dynamic.set(key, value)
    assert await dynamic.values() == {key: value}
    assert dynamic.config == STARTUP
    await DynamicConfig(store, STARTUP).load()
    warning = f"dynamic setting without effect key={key} value={value} reason={NotOffered.BUNDLE_PLACEMENT}"
    assert caplog.messages == [warning, warning]
    await dynamic.delete(key)
    assert await dynamic.values() == {}


def test_settings_without_effect_are_none_that_have_one() -> None:
    silent = {key for names in WITHOUT_EFFECT.values() for key in names.split()} | READ_AT_START
    assert not silent & set(dynamic_keys())
    assert not silent - READ_AT_START - PULSAR_KEYS
    assert not READ_AT_START - set(settings_by_key())


async def test_default_partitions_above_the_maximum_of_the_start_are_left_alone(store: MemoryMetadataStore) -> None:
    dynamic = DynamicConfig(store, BrokerConfig(default_num_partitions=8, max_num_partitions_per_partitioned_topic=4))
    await dynamic.load()
    assert dynamic.config.default_num_partitions == 8


@pytest.mark.parametrize(
    ("key", "value"), [("maxNumPartitionsPerPartitionedTopic", "4"), ("defaultNumPartitions", "100")]
)
async def test_default_partitions_when_changed_at_run_time_are_clamped(
    store: MemoryMetadataStore, key: str, value: str
) -> None:
    startup = BrokerConfig(default_num_partitions=8, max_num_partitions_per_partitioned_topic=10)
    dynamic = DynamicConfig(store, startup)
    await dynamic.set(key, value)
    assert dynamic.config.default_num_partitions == dynamic.config.max_num_partitions_per_partitioned_topic


async def test_default_partitions_are_clamped_to_what_a_topic_may_have_without_a_maximum(
    store: MemoryMetadataStore,
) -> None:
    dynamic = DynamicConfig(store, STARTUP)
    await dynamic.set("defaultNumPartitions", "2000000")
    assert dynamic.config.default_num_partitions == dynamic.config.partitions_max


async def test_load_when_a_stored_value_is_not_valid_uses_the_others(store: MemoryMetadataStore) -> None:
    values = {"defaultNumPartitions": "many", "noSuchKey": "1", "maxTopicsPerNamespace": "5"}
    await store.commit([Put(keys.CONFIGURATION, json.dumps(values).encode())])
    dynamic = DynamicConfig(store, STARTUP)
    await dynamic.load()
    assert dynamic.config == BrokerConfig(default_num_partitions=8, max_topics_per_namespace=5)
