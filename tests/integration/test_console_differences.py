"""The page of differences between two clusters: what it tells, page by page, and that its plan is carried out whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.testing import InProcessBroker
from tests.front_ends.brokers import NO_JOB
from tests.support.console_browser import Page, PlainBrowser, address
from tests.support.waiting import until

CHANGES = 120
QUERY = {"namespace": "shop/orders", "clusters": "west"}


@pytest.fixture
def east(tmp_path: Path) -> Iterator[InProcessBroker]:
    with InProcessBroker(tmp_path / "east", NO_JOB | {"clusterName": "east"}) as broker:
        yield broker


@pytest.fixture
def west(tmp_path: Path) -> Iterator[InProcessBroker]:
    with InProcessBroker(tmp_path / "west", NO_JOB | {"clusterName": "west"}) as broker:
        yield broker


@pytest.fixture
def browser(east: InProcessBroker, west: InProcessBroker) -> PlainBrowser:
    """Of east, whose topics have more partitions than those of west."""
    for broker, other in ((east, west), (west, east)):
        name = other.app.context.namespaces.local_cluster
        broker.admin.clusters.create(name, ClusterData(other.web_url, broker_service_url=other.service_url))
        broker.admin.tenants.create("shop", TenantInfo(allowed_clusters=("east", "west")))
        broker.admin.namespaces.create("shop/orders")
    for number in range(CHANGES):
        for broker, partitions in ((east, 2), (west, 1)):
            broker.admin.topics.create_partitioned(f"shop/orders/t-{number:03}", partitions)
    return PlainBrowser(east.web_url)


def shown(browser: PlainBrowser, number: int = 0) -> tuple[dict[str, Any], Page]:
    """A page of the plan, when the clusters are compared."""
    query = QUERY | ({"page": str(number)} if number else {})

    def known() -> dict[str, Any] | None:
        page = browser.get(address("differences.json", query))
        assert page.status == 200, page.text
        model: dict[str, Any] = json.loads(page.text)
        return model if model["known"] else None

    model = until(known)
    assert model is not None
    return model, browser.get(address("differences", query))


def test_plan_when_it_is_long_then_is_shown_page_by_page_and_carried_out_whole(
    browser: PlainBrowser, east: InProcessBroker, west: InProcessBroker
) -> None:
    seen: list[str] = []
    for number in range(3):
        model, page = shown(browser, number)
        rows = model["page"]["rows"]
        assert (model["outcome"], model["page"]["total"]) == ("NEEDS_ADJUSTMENT", CHANGES)
        assert [each["changes_total"] for each in model["clusters"]] == [CHANGES]
        assert all(row["subject"] in page.text and row["request"].startswith("POST ") for row in rows)
        seen += [row["subject"] for row in rows]
    assert seen == [f"persistent://shop/orders/t-{number:03}" for number in range(CHANGES)]
    fields = {"namespace": "shop/orders", "clusters": "east,west", "digest": model["digest"]}
    place = address("actions/adjust-replication", fields)
    assert browser.post(place, {"token": browser.get(place).token}).status == 303
    assert west.admin.topics.partition_counts("shop/orders") == dict.fromkeys(seen, 2)
    assert list(east.admin.namespaces.replication_clusters("shop/orders")) == ["east", "west"]


def test_conflict_when_there_are_changes_too_then_comes_first(browser: PlainBrowser, west: InProcessBroker) -> None:
    west.admin.topics.expand("shop/orders/t-100", 3)
    model, page = shown(browser)
    first = model["page"]["rows"][0]
    assert (model["outcome"], first["subject"]) == ("CONFLICT", "persistent://shop/orders/t-100")
    assert [(each["conflicts_total"], each["changes_total"]) for each in model["clusters"]] == [(1, CHANGES - 1)]
    assert first["reason"] in unescape(page.text)
    assert first["remedy"] in unescape(page.text)
    assert "Carry out this plan" not in page.text


def test_plan_when_previews_are_switched_off_then_is_refused_like_the_call(tmp_path: Path) -> None:
    settings = NO_JOB | {"supportsReplicationPreview": "false"}
    with InProcessBroker(tmp_path, settings) as broker:
        query = {"namespace": "public/default", "clusters": "standalone"}
        page = PlainBrowser(broker.web_url).get(address("differences", query))
        assert page.status == 405
        assert "supportsReplicationPreview" in page.text
