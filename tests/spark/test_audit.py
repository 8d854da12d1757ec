"""The audit in a local Spark: two brokers with two thousand topics, and inventories that no cluster ever had."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.replication.cluster_reading import ReadingRules
from interpulse.spark.audit import comparing
from interpulse.spark.audit.launch import Audit, AuditError, AuditOptions
from interpulse.spark.audit.plans import RunError, plan_of_run
from interpulse.spark.job.pipeline_config import PipelineConfig, Selection
from interpulse.spark.session import file_url
from interpulse.testing import InProcessBroker
from tests.scenarios.audit import differ

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

NAMESPACE = NamespaceName.parse("public/audited")
EACH = 1000
KEPT = {"brokerDeleteInactiveTopicsEnabled": "false"}
RULES = ReadingRules(rate=10_000)


def create_topic(broker, name, partitions):
    broker.call(lambda app: app.lifecycle.create_partitioned(name, partitions))


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    directory = tmp_path_factory.mktemp("clusters")
    with (
        InProcessBroker(directory / "east", {"clusterName": "east", **KEPT}) as east,
        InProcessBroker(directory / "west", {"clusterName": "west", **KEPT}) as west,
    ):
        for broker in (east, west):
            for number in range(EACH):
                name = TopicName.parse(f"public/default/t{number}")
                create_topic(broker, name, 1 + name.local_name.count("7"))
        addresses = [
            ClusterAddress(cluster=name, service_url=broker.service_url, admin_url=broker.web_url)
            for name, broker in (("east", east), ("west", west))
        ]
        select = Selection(namespaces=(str(NAMESPACE),))
        yield PipelineConfig(name="p", state=directory, source=addresses[0], target=addresses[1], select=select)


async def create(url, namespaces):
    async with AdminClient(url) as admin:
        for name in namespaces:
            await admin.namespaces.create(name)


def test_audit_when_run_over_two_clusters_then_counts_what_differs_and_what_is_new(spark, hdfs, config, tmp_path):
    stages = []

    def audit(run):
        return Audit(spark, tmp_path, run, config, lambda stage, done, total: stages.append(stage))

    first = audit("first").compare(AuditOptions(rules=RULES))
    assert first["result"] == "same"
    assert first["counts"] == []
    assert first["covered"]["east"]["topics"] == first["covered"]["west"]["topics"] >= EACH
    assert list(dict.fromkeys(stages)) == ["reading east", "reading west", "comparing"]
    expected = asyncio.run(differ(config.source.admin_url, config.target.admin_url, NAMESPACE))
    second = audit("second").compare(AuditOptions(rules=RULES), "first")
    assert second["result"] == "different"
    found = {row["kind"]: row["count"] for row in second["counts"]}
    kinds = [kind for kind, _ in expected]
    assert found == {kind: kinds.count(kind) for kind in kinds}
    assert len(second["new"]) == len(expected)
    assert json.loads((tmp_path / "second" / "summary.json").read_text())["result"] == "different"
    plan = plan_of_run(tmp_path / "second", config)
    assert len(plan["items"]) == len(expected) - 2
    assert all(
        row.confirmed_at_ms for row in spark.read.parquet(file_url(tmp_path / "second" / "differences")).collect()
    )
    stages.clear()
    assert audit("second").compare(AuditOptions(rules=RULES))["counts"] == second["counts"]
    assert stages == []  # nothing is read again
    with pytest.raises(RunError, match="run audit compare first"):
        plan_of_run(tmp_path / "third", config)
    with pytest.raises(AuditError, match="--against absent"):
        audit("third").compare(AuditOptions(rules=RULES), "absent")


def test_audit_when_stopped_then_the_same_command_goes_on_and_another_one_is_refused(spark, config, tmp_path):
    stages = []

    def stop(stage, done, total):
        stages.append(stage)
        if stage == "reading west":  # east is read
            raise KeyboardInterrupt

    options = AuditOptions(rules=replace(RULES, subscriptions=True))
    with pytest.raises(KeyboardInterrupt):
        Audit(spark, tmp_path, "run", config, stop).compare(options)
    with pytest.raises(AuditError, match="started with other namespaces, subscriptions"):
        Audit(spark, tmp_path, "run", config, stop).compare(AuditOptions(namespaces=("a/b",), rules=RULES))
    stages.clear()
    Audit(spark, tmp_path, "run", config, lambda stage, done, total: stages.append(stage)).compare(options)
    assert list(dict.fromkeys(stages)) == ["reading west", "comparing"]


def test_inventory_when_stopped_then_namespaces_that_were_read_are_not_read_again(spark, config, tmp_path, monkeypatch):
    monkeypatch.setattr(comparing, "_NAMESPACES_FIRST", 1)
    names = [f"public/restart-{number}" for number in range(3 * spark.sparkContext.defaultParallelism)]
    for address in (config.source, config.target):
        asyncio.run(create(address.admin_url, names))

    def stop(stage, done, total):
        if 0 < done < total == len(names) and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt

    options = AuditOptions(namespaces=tuple(names), rules=RULES)
    with pytest.raises(KeyboardInterrupt):
        Audit(spark, tmp_path, "run", config, stop).take_inventories(options)
    (first,) = (tmp_path / "run" / "east").glob("part=*")
    before = {path: path.stat().st_mtime_ns for path in first.iterdir()}
    told = []
    summary = Audit(spark, tmp_path, "run", config, lambda *each: told.append(each)).compare(options)
    assert {path: path.stat().st_mtime_ns for path in first.iterdir()} == before
    assert summary["covered"]["east"]["namespaces"] == len(names)
    assert summary["result"] == "same"
    assert ("reading east", len(names), len(names)) in told


def test_audit_when_a_namespace_cannot_be_read_then_says_how_much_is_covered(spark, config, tmp_path):
    away = replace(config.target, admin_url="http://127.0.0.1:1")
    broken = replace(config, target=away)
    options = AuditOptions(namespaces=("public/default",), rules=replace(RULES, patience_ms=0))
    summary = Audit(spark, tmp_path, "run", broken, lambda *_: None).compare(options)
    assert sum(side["unread"] for side in summary["covered"].values()) == 1
    assert summary["result"] == "incomplete"
    assert summary["counts"] == []
