"""The audit between a broker of ours and a real Pulsar, both ways: read, compared, and made equal by a plan."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpulse.model.names import NamespaceName
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.replication.cluster_reading import ClusterReading, ReadingRules
from interpulse.rules.comparison import inventory_differences
from interpulse.spark.audit.comparing import difference_row
from interpulse.spark.audit.plans import apply_plan, make_plan
from interpulse.spark.job.pipeline_config import PipelineConfig, Selection
from interpulse.testing import InProcessBroker
from tests.interop.real_pulsar import Address
from tests.scenarios.audit import differ

pytestmark = [pytest.mark.interop, pytest.mark.slow]

RULES = ReadingRules(exact="all")


@pytest.fixture
def sides(real_pulsar: Address, tmp_path: Path) -> Iterator[dict[str, ClusterAddress]]:
    with InProcessBroker(tmp_path / "ours", {"clusterName": "ours"}) as broker:
        found = {"standalone": real_pulsar, "ours": Address(broker.service_url, broker.web_url)}
        yield {
            name: ClusterAddress(cluster=name, service_url=each.service_url, admin_url=each.web_url)
            for name, each in found.items()
        }


@pytest.mark.parametrize(("here", "there"), [("ours", "standalone"), ("standalone", "ours"), ("standalone", "second")])
async def test_namespaces_when_they_differ_then_a_plan_makes_them_equal(
    here: str, there: str, sides: dict[str, ClusterAddress], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if there == "second":
        second = request.getfixturevalue("start_real_pulsar")("second").address
        sides["second"] = ClusterAddress(cluster="second", service_url=second.service_url, admin_url=second.web_url)
    source, target = sides[here], sides[there]
    namespace = NamespaceName.parse(f"public/audited-{uuid.uuid4().hex[:8]}")
    config = PipelineConfig(
        name="p", state=tmp_path, source=source, target=target, select=Selection(namespaces=(str(namespace),))
    )
    expected = await differ(source.admin_url, target.admin_url, namespace)

    async def found() -> list[dict[str, Any]]:
        async with ClusterReading(source.admin(), RULES) as one, ClusterReading(target.admin(), RULES) as other:
            both = await one.namespace(namespace), await other.namespace(namespace)
        assert [side.error for side in both] == [None, None]
        rows = inventory_differences(there, namespace, *both)
        users = [each for each in rows if each.topic is None or not each.topic.is_system]  # a real broker makes its own
        return [difference_row(each, there, str(each.topic or each.namespace)) for each in users]

    rows = await found()
    assert sorted({(row["kind"], row["topic"]) for row in rows} - set(BROKERS_OWN), key=str) == expected
    plan = make_plan(rows, run="r", source=here, target=there)
    results = [
        (item["kind"], status, reason)
        async for item, status, reason in apply_plan(plan, config, tmp_path / "results.jsonl", rate=100)
    ]
    assert [each for each in results if each[1] != "DONE"] == []
    assert {row["kind"] for row in await found()} == {"PARTITIONS_CANNOT_SHRINK", "REMOTE_ONLY_TOPIC"}


BROKERS_OWN = [("AUTO_TOPIC_CREATION", None), ("SCHEMA_COMPATIBILITY_STRATEGY", None), ("BACKLOG_QUOTA", None)]
"""What may differ because the brokers have other settings."""
