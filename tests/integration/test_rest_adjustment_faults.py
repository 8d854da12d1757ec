"""Adjustment of a remote cluster that is in trouble: nothing is stored, and what was done is told step by step."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.adjustable import ADJUST, POLICIES, PREVIEW, REPLICATION, differ, kinds, stored
from tests.integration.rest_broker import RestBroker
from tests.integration.rest_client import call
from tests.integration.two_clusters import BOTH, done, join
from tests.stub_web import StubWeb


def healthy(
    west: StubWeb, partitions: int = 2, *, override: dict[str, Any] | None = None, broken: str | None = None
) -> None:
    """Answers of a cluster that has one topic of the namespace; none for the path that is broken."""
    answers = {
        POLICIES: {"replication_clusters": ["west"], "autoTopicCreationOverride": override},
        "/admin/v2/brokers/configuration/runtime": {},
        "/admin/v2/persistent/demo/a/partitioned": ["persistent://demo/a/p"],
        "/admin/v2/non-persistent/demo/a/partitioned": [],
        "/admin/v2/persistent/demo/a": ["persistent://demo/a/p-partition-0"],
        "/admin/v2/persistent/demo/a/p/partitions": {"partitions": partitions},
    }
    for path, answer in answers.items():
        if path != broken:
            west.answer("GET", path, answer)


READING = [
    POLICIES,
    "/admin/v2/brokers/configuration/runtime",
    "/admin/v2/persistent/demo/a/partitioned",
    "/admin/v2/non-persistent/demo/a/partitioned",
    "/admin/v2/persistent/demo/a",
    "/admin/v2/persistent/demo/a/p/partitions",
]


@pytest.mark.parametrize("trouble", ["500", "401", "307", "html", "html-called-text", "hang-up"])
@pytest.mark.parametrize("step", READING)
async def test_cluster_that_cannot_be_read_is_a_conflict_at_every_step(
    east: RestBroker, step: str, trouble: str
) -> None:
    with StubWeb() as west:
        if trouble == "500":
            west.answer("GET", step, {"reason": "out of order"}, status=500)
        elif trouble == "401":
            west.answer("GET", step, {"reason": "token expired"}, status=401)
        elif trouble == "307":
            west.answer_raw("GET", step, b"", status=307, headers={"Location": f"{west.url}{step}"})
        elif trouble == "html":
            west.answer_raw("GET", step, b"<html>proxy</html>", content_type="text/html")
        elif trouble == "html-called-text":
            west.answer_raw("GET", step, b"<html>proxy</html>")
        else:
            west.hang_up("GET", step)
        healthy(west, broken=step)
        await join(east, west.url)
        await done(east, "PUT", "persistent/demo/a/p/partitions", 4)
        reply = await call(east.web_url, "POST", ADJUST, BOTH)
        assert (reply.status, reply.json["applied"]) == (409, False)
        assert kinds(reply, "conflicts") == ["CLUSTER_UNREACHABLE"]
        assert f"west at {west.url}" in reply.reason
        assert not [each for each in west.asked if each.method != "GET"]
    assert await stored(east) == ["east"]


async def test_cluster_that_is_away_is_a_conflict(east: RestBroker) -> None:
    await join(east, "http://127.0.0.1:1")
    reply = await call(east.web_url, "POST", PREVIEW, BOTH)
    assert (reply.json["outcome"], reply.json["clusters"][0]["checked"]) == ("CONFLICT", False)
    await done(east, "POST", REPLICATION, BOTH)


@pytest.mark.parametrize("step", range(3))
async def test_failure_in_the_middle_is_told_step_by_step_and_stores_nothing(east: RestBroker, step: int) -> None:
    changing = [
        ("POST", f"{POLICIES}/autoTopicCreation"),
        ("PUT", f"{POLICIES}/schemaCompatibilityStrategy"),
        ("POST", "/admin/v2/persistent/demo/a/p/partitions"),
    ]
    with StubWeb() as west:
        healthy(west, override={"allowAutoTopicCreation": False})
        west.answer(*changing[step], {"reason": "disk full"}, status=500)
        await join(east, west.url)
        await done(east, "PUT", "persistent/demo/a/p/partitions", 4)
        await done(east, "PUT", "namespaces/demo/a/schemaCompatibilityStrategy", "BACKWARD")
        reply = await call(east.web_url, "POST", ADJUST, BOTH)
    assert (reply.status, reply.json["applied"]) == (500, False)
    assert "west could not be adjusted: disk full" in reply.reason
    statuses = [each["status"] for each in reply.json["clusters"][0]["changes"]]
    assert statuses == ["DONE"] * step + ["FAILED"] + ["PENDING"] * (2 - step)
    assert reply.json["clusters"][0]["changes"][step]["error"] == "disk full"
    assert await stored(east) == ["east"]


async def test_growing_whose_answer_is_lost_counts_by_what_the_topic_has(east: RestBroker) -> None:
    with StubWeb() as west:
        healthy(west)
        west.answer("GET", "/admin/v2/persistent/demo/a/p/partitions", {"partitions": 4})  # from the second time on
        west.hang_up("POST", "/admin/v2/persistent/demo/a/p/partitions")
        await join(east, west.url)
        await done(east, "PUT", "persistent/demo/a/p/partitions", 4)
        reply = await call(east.web_url, "POST", ADJUST, BOTH)
    assert (reply.status, reply.json["applied"]) == (200, True)


async def test_cluster_that_takes_a_change_but_does_not_keep_it_is_found_out(east: RestBroker) -> None:
    with StubWeb() as west:
        healthy(west)
        await join(east, west.url)
        await done(east, "PUT", "persistent/demo/a/p/partitions", 4)
        reply = await call(east.web_url, "POST", ADJUST, BOTH)
    assert (reply.status, reply.json["applied"]) == (409, False)
    assert "still differ" in reply.reason
    assert await stored(east) == ["east"]


async def test_adjustment_that_was_broken_off_is_completed_by_repeating_it(east: RestBroker, west: RestBroker) -> None:
    await differ(east, west)
    await done(west, "POST", "brokers/configuration/maxNumPartitionsPerPartitionedTopic/3")
    broken = await call(east.web_url, "POST", ADJUST, BOTH)
    assert (broken.status, broken.json["applied"]) == (422, False)
    statuses = [each["status"] for each in broken.json["clusters"][0]["changes"]]
    assert statuses == ["DONE", "DONE", "DONE", "FAILED", "PENDING"]
    assert await stored(east) == ["east"]
    left = await call(east.web_url, "POST", PREVIEW, BOTH)
    assert kinds(left) == ["TOPIC_PARTITIONS", "TOPIC_PARTITIONS"]
    await done(west, "DELETE", "brokers/configuration/maxNumPartitionsPerPartitionedTopic")
    assert (await done(east, "POST", ADJUST, BOTH)).json["applied"] is True
    assert await stored(east) == BOTH
