"""The audit without Spark: namespaces of two brokers are read and compared, and a plan makes the target equal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.admin.topics import TopicsAdmin
from interpulse.model.errors import NotConnected, OperationTimeout
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_records import BacklogQuota, RetentionPolicies
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.replication.cluster_reading import ClusterReading, ReadingRules
from interpulse.rules.comparison import inventory_differences
from interpulse.rules.inventory import NamespaceInventory
from interpulse.spark.audit.comparing import (
    Confirm,
    ReadNamespaces,
    difference_row,
    inventory_rows,
    state_of,
    topic_row_of,
)
from interpulse.spark.audit.plans import PlanError, apply_plan, load_plan, make_plan, write_plan
from interpulse.spark.job.pipeline_config import PipelineConfig, Selection
from interpulse.spark.topic_map import TopicMap, parse_topic_map
from interpulse.testing import InProcessBroker
from tests.scenarios.audit import differ

NAMESPACE = NamespaceName.parse("public/audited")
RULES = ReadingRules(schemas=True)
RECORDED = Path(__file__).parent / "recorded" / "audit_plan_version_1.json"
"""A file that `audit plan` of version 0.1 wrote for the clusters of `differ`."""


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[tuple[InProcessBroker, InProcessBroker]]:
    with (
        InProcessBroker(tmp_path / "east", {"clusterName": "east"}) as east,
        InProcessBroker(tmp_path / "west", {"clusterName": "west"}) as west,
    ):
        yield east, west


@pytest.fixture
def config(brokers: Any, tmp_path: Path) -> PipelineConfig:
    addresses = [
        ClusterAddress(cluster=name, service_url=broker.service_url, admin_url=broker.web_url)
        for name, broker in zip(("east", "west"), brokers, strict=True)
    ]
    select = Selection(namespaces=(str(NAMESPACE),))
    return PipelineConfig(name="p", state=tmp_path, source=addresses[0], target=addresses[1], select=select)


async def read(config: PipelineConfig) -> tuple[NamespaceInventory, NamespaceInventory]:
    assert config.target is not None
    async with (
        ClusterReading(config.source.admin(), RULES) as source,
        ClusterReading(config.target.admin(), RULES) as target,
    ):
        return await source.namespace(NAMESPACE), await target.namespace(NAMESPACE)


async def found(config: PipelineConfig) -> list[dict[str, Any]]:
    differences = inventory_differences("west", NAMESPACE, *await read(config))
    return [difference_row(each, "west", str(each.topic or each.namespace)) for each in differences]


async def applied(plan: dict[str, Any], config: PipelineConfig, results: Path) -> list[tuple[str, str]]:
    return [(item["kind"], status) async for item, status, _ in apply_plan(plan, config, results, rate=1000)]


async def test_namespaces_when_they_differ_then_a_plan_makes_them_equal(config: PipelineConfig, tmp_path: Path) -> None:
    assert config.target is not None
    expected = await differ(config.source.admin_url, config.target.admin_url, NAMESPACE)
    rows = await found(config)
    assert sorted(((row["kind"], row["topic"]) for row in rows), key=str) == expected
    plan = make_plan(rows, run="r", source="east", target="west")
    assert {row["kind"] for row in plan["excluded"]} == {"PARTITIONS_CANNOT_SHRINK", "REMOTE_ONLY_TOPIC"}
    path = tmp_path / "plan.json"
    write_plan(path, plan)
    loaded = load_plan(path, config)
    assert loaded == plan
    async with AdminClient(config.target.admin_url) as west:
        await west.namespaces.set_message_ttl(NAMESPACE, 99)  # since the plan was made
    outcome = await applied(loaded, config, tmp_path / "results.jsonl")
    assert {kind for kind, status in outcome if status != "DONE"} == {"MESSAGE_TTL"}
    assert dict(outcome)["MESSAGE_TTL"] == "SKIPPED"
    again = await applied(loaded, config, tmp_path / "results.jsonl")
    assert again == outcome
    left = {row["kind"] for row in await found(config)}
    assert left == {"PARTITIONS_CANNOT_SHRINK", "REMOTE_ONLY_TOPIC", "MESSAGE_TTL"}


async def test_plan_file_of_an_earlier_version_still_applies(config: PipelineConfig, tmp_path: Path) -> None:
    assert config.target is not None
    await differ(config.source.admin_url, config.target.admin_url, NAMESPACE)
    plan = load_plan(RECORDED, config)
    outcome = await applied(plan, config, tmp_path / "results.jsonl")
    assert outcome == [(item["kind"], "DONE") for item in plan["items"]]
    assert {row["kind"] for row in await found(config)} == {"PARTITIONS_CANNOT_SHRINK", "REMOTE_ONLY_TOPIC"}
    assert make_plan(await found(config), run="r", source="east", target="west")["excluded"] == plan["excluded"]


async def test_quotas_of_both_kinds_when_they_differ_then_are_items_of_their_own(
    config: PipelineConfig, tmp_path: Path
) -> None:
    assert config.target is not None
    await differ(config.source.admin_url, config.target.admin_url, NAMESPACE)
    for address in (config.source, config.target):
        async with AdminClient(address.admin_url) as admin:
            await admin.namespaces.set_retention(NAMESPACE, RetentionPolicies(time_minutes=-1, size_mb=-1))
            quota = BacklogQuota(1000 + (address is config.source), 20 + (address is config.source))
            await admin.namespaces.set_backlog_quota(NAMESPACE, quota, "destination_storage")
            await admin.namespaces.set_backlog_quota(NAMESPACE, quota, "message_age")
    plan = make_plan(await found(config), run="r", source="east", target="west")
    outcome = await applied(plan, config, tmp_path / "results.jsonl")
    assert [each for each in outcome if each[0] == "BACKLOG_QUOTA"] == [("BACKLOG_QUOTA", "DONE")] * 2


async def test_confirmed_differences_are_those_that_are_still_there(config: PipelineConfig) -> None:
    assert config.target is not None
    await differ(config.source.admin_url, config.target.admin_url, NAMESPACE)
    candidates = await found(config)
    async with AdminClient(config.target.admin_url) as west:
        await west.topics.create_partitioned(f"{NAMESPACE}/missing", 3)
    confirm = Confirm(config.source, config.target, RULES, TopicMap())
    confirmed = await confirm._confirmed(str(NAMESPACE), candidates)
    assert {(row["kind"], row["topic"]) for row in candidates} - {(row["kind"], row["topic"]) for row in confirmed} == {
        ("TOPIC_MISSING", f"persistent://{NAMESPACE}/missing")
    }
    assert all(row["confirmed_at_ms"] for row in confirmed)


async def test_differences_when_read_again_then_no_other_topic_is_asked(
    config: PipelineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert config.target is not None
    await differ(config.source.admin_url, config.target.admin_url, NAMESPACE)
    async with AdminClient(config.source.admin_url) as east:
        await east.topics.create_subscription(f"{NAMESPACE}/plain", "s")
    rules = ReadingRules(subscriptions=True)
    async with (
        ClusterReading(config.source.admin(), rules) as source,
        ClusterReading(config.target.admin(), rules) as target,
    ):
        contents = await source.namespace(NAMESPACE), await target.namespace(NAMESPACE)
    rows = [
        difference_row(each, "west", str(each.topic)) for each in inventory_differences("west", NAMESPACE, *contents)
    ]
    candidates = [row for row in rows if row["kind"] == "SUBSCRIPTION_MISSING"]
    asked = []
    ask = TopicsAdmin.subscriptions

    async def subscriptions(admin: TopicsAdmin, topic: TopicName) -> list[str]:
        asked.append(topic.local_name)
        return await ask(admin, topic)

    monkeypatch.setattr(TopicsAdmin, "subscriptions", subscriptions)
    confirmed = await Confirm(config.source, config.target, rules, TopicMap())._confirmed(str(NAMESPACE), candidates)
    assert [row["topic"] for row in confirmed] == [f"persistent://{NAMESPACE}/plain"]
    assert asked == ["plain", "plain"]


async def test_inventory_rows_when_read_back_then_are_what_was_listed(config: PipelineConfig) -> None:
    assert config.target is not None
    await differ(config.source.admin_url, config.target.admin_url, NAMESPACE)
    content, _ = await read(config)
    renaming = parse_topic_map({"rules": [{"from": f"{NAMESPACE}/(.*)", "to": "public/other/$1"}]})
    own, *topics = inventory_rows("east", NAMESPACE, content, renaming)
    assert content.state == state_of(own["policies"], own["settings"])
    assert {topic_row_of(row).topic: topic_row_of(row).partitions for row in topics} == {
        TopicName.parse(f"public/other/{name.local_name}"): row.partitions for name, row in content.topics.items()
    }


async def test_namespace_when_absent_or_unreadable_then_says_so(config: PipelineConfig) -> None:
    here, there = await read(config)
    assert here == there == NamespaceInventory()
    assert list(inventory_rows("east", NAMESPACE, here, TopicMap())) == []
    away = ClusterAddress(cluster="away", service_url="pulsar://127.0.0.1:1", admin_url="http://127.0.0.1:1")
    async with ClusterReading(away.admin(), ReadingRules(patience_ms=0)) as reading:
        content = await reading.namespace(NAMESPACE)
    assert content.error is not None
    (row,) = inventory_rows("away", NAMESPACE, content, TopicMap())
    assert row["error"] == content.error
    assert inventory_differences("away", NAMESPACE, here, content) == []


async def test_namespace_when_the_broker_is_busy_for_a_moment_then_is_asked_again(
    config: PipelineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert config.target is not None
    await differ(config.source.admin_url, config.target.admin_url, NAMESPACE)
    failures = iter([OperationTimeout("busy"), NotConnected("gone")])
    ask = TopicsAdmin.list

    async def busy(*arguments: Any, **more: Any) -> list[str]:
        for failure in failures:
            raise failure
        return await ask(*arguments, **more)

    monkeypatch.setattr(TopicsAdmin, "list", busy)
    async with ClusterReading(config.source.admin(), RULES) as reading:
        content = await reading.namespace(NAMESPACE)
    assert content.error is None
    assert content.topics


async def test_schemas_when_the_target_lacks_a_version_then_how_many_there_are_is_told(config: PipelineConfig) -> None:
    assert config.target is not None
    await differ(config.source.admin_url, config.target.admin_url, NAMESPACE)
    for url, count in ((config.source.admin_url, 2), (config.target.admin_url, 1)):
        async with AdminClient(url) as admin:
            for fields in range(count):
                columns = [{"name": f"f{number}", "type": ["null", "int"], "default": None} for number in range(fields)]
                definition = json.dumps({"type": "record", "name": "r", "fields": columns}).encode()
                await admin.schemas.upload(f"{NAMESPACE}/equal", SchemaInfo(SchemaType.AVRO, definition))
    (row,) = [row for row in await found(config) if row["kind"] == "SCHEMA_DIFFERENT"]
    values = json.loads(row["source_value"]), json.loads(row["target_value"])
    assert [(value["type"], value["versions"]) for value in values] == [("AVRO", 2), ("AVRO", 1)]


async def test_subscriptions_when_asked_for_then_missing_ones_are_told(config: PipelineConfig) -> None:
    assert config.target is not None
    urls = config.source.admin_url, config.target.admin_url
    await differ(*urls, NAMESPACE)
    for url, names in zip(urls, (("billing", "both"), ("both", "theirs")), strict=True):
        async with AdminClient(url) as admin:
            for topic in ("equal", "plain"):
                for name in names:
                    await admin.topics.create_subscription(f"{NAMESPACE}/{topic}", name)
    rules = ReadingRules(subscriptions=True)
    async with (
        ClusterReading(config.source.admin(), rules) as source,
        ClusterReading(config.target.admin(), rules) as target,
    ):
        contents = await source.namespace(NAMESPACE), await target.namespace(NAMESPACE)
    rows = [difference_row(each, "west", None) for each in inventory_differences("west", NAMESPACE, *contents)]
    assert [
        (row["topic"].rpartition("/")[2], row["source_value"], row["target_value"], row["automatic"])
        for row in rows
        if row["kind"] == "SUBSCRIPTION_MISSING"
    ] == [(topic, '["billing"]', '["both", "theirs"]', False) for topic in ("equal", "plain")]
    asked = list(inventory_rows("east", NAMESPACE, contents[0], TopicMap()))[1]
    assert topic_row_of(asked).subscriptions == ("billing", "both")


async def test_plan_when_it_is_none_or_was_altered_then_is_refused(config: PipelineConfig, tmp_path: Path) -> None:
    assert config.target is not None
    await differ(config.source.admin_url, config.target.admin_url, NAMESPACE)
    plan = make_plan(await found(config), run="r", source="east", target="west")
    path = tmp_path / "plan.json"
    for altered, told in (
        ({**plan, "target": "north"}, "is for east -> north"),
        ({**plan, "version": 2}, "a plan of version 2"),
        ({**plan, "items": [{**plan["items"][0], "request": "{}"}]}, "was altered"),
        ({}, "is not a plan"),
    ):
        path.write_text(json.dumps(altered))
        with pytest.raises(PlanError, match=told):
            load_plan(path, config)
    with pytest.raises(PlanError, match="No such file"):
        load_plan(tmp_path / "absent.json", config)


async def test_workers_when_given_names_then_give_the_rows_of_their_namespaces(config: PipelineConfig) -> None:
    assert config.target is not None
    await differ(config.source.admin_url, config.target.admin_url, NAMESPACE)
    names = pa.RecordBatch.from_pydict({"namespace": [str(NAMESPACE), "public/absent"]})
    reading = ReadNamespaces(config.source, RULES, TopicMap())
    (batch,) = await asyncio.to_thread(lambda: list(reading(iter([names]))))
    rows = batch.to_pylist()
    assert [row["error"] for row in rows] == [None] * len(rows)
    assert {row["topic"] for row in rows if row["topic"]} == {
        f"persistent://{NAMESPACE}/{name}" for name in ("equal", "plain", "missing", "missing-plain", "small", "large")
    }
