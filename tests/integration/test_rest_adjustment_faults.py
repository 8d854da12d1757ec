"""Adjustment of a remote cluster that is in trouble: nothing is stored, and what was done is told step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from interpulse.replication.connect import connect
from tests.support.adjustable_namespace import ADJUST, POLICIES, PREVIEW, REPLICATION, differ, kinds, stored
from tests.support.joined_clusters import BOTH, done, join
from tests.support.rest_broker import RestBroker
from tests.support.rest_client import call
from tests.support.stub_web import StubWeb


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


HTML = b"<html>proxy</html>"
TROUBLES: Mapping[str, Callable[[StubWeb, str, str], None]] = {
    "500": lambda west, *step: west.answer(*step, {"reason": "out of order"}, status=500),
    "401": lambda west, *step: west.answer(*step, {"reason": "token expired"}, status=401),
    "307": lambda west, *step: west.answer_raw(*step, b"", status=307, headers={"Location": west.url + step[1]}),
    "html": lambda west, *step: west.answer_raw(*step, HTML, content_type="text/html"),
    "html-called-text": lambda west, *step: west.answer_raw(*step, HTML),
    "disconnect": lambda west, *step: west.disconnect(*step),
    "never": lambda west, *step: west.say_nothing(*step),
}


def be_impatient(east: RestBroker) -> None:
    """As if the ten seconds for an answer were over sooner."""
    east.context.replication_clusters.connect = partial(connect, timeout_ms=3000)


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("step", READING)
async def test_cluster_that_cannot_be_read_is_a_conflict_at_every_step(
    east: RestBroker, step: str, trouble: str
) -> None:
    with StubWeb() as west:
        TROUBLES[trouble](west, "GET", step)
        if trouble == "never":
            be_impatient(east)
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


CHANGING = [
    ("POST", f"{POLICIES}/autoTopicCreation"),
    ("PUT", f"{POLICIES}/schemaCompatibilityStrategy"),
    ("POST", "/admin/v2/persistent/demo/a/p/partitions"),
]
WORDS = {
    "500": "out of order",
    "401": "token expired",
    "307": "redirects more than",
    "html": "is no broker",
    "disconnect": "failed",
    "never": "did not answer within 3000 ms",
}


@pytest.mark.parametrize("trouble", WORDS)
@pytest.mark.parametrize("step", range(len(CHANGING)))
async def test_failure_in_the_middle_is_told_step_by_step_and_stores_nothing(
    east: RestBroker, step: int, trouble: str
) -> None:
    with StubWeb() as west:
        healthy(west, override={"allowAutoTopicCreation": False})
        TROUBLES[trouble](west, *CHANGING[step])
        if trouble == "never":
            be_impatient(east)
        await join(east, west.url)
        await done(east, "PUT", "persistent/demo/a/p/partitions", 4)
        await done(east, "PUT", "namespaces/demo/a/schemaCompatibilityStrategy", "BACKWARD")
        reply = await call(east.web_url, "POST", ADJUST, BOTH)
    assert (reply.status >= 400, reply.json["applied"]) == (True, False)
    assert "west could not be adjusted: " in reply.reason
    statuses = [each["status"] for each in reply.json["clusters"][0]["changes"]]
    assert statuses == ["DONE"] * step + ["FAILED"] + ["PENDING"] * (2 - step)
    assert WORDS[trouble] in reply.json["clusters"][0]["changes"][step]["error"]
    assert await stored(east) == ["east"]


async def test_growing_whose_answer_is_lost_counts_by_what_the_topic_has(east: RestBroker) -> None:
    with StubWeb() as west:
        healthy(west)
        west.answer("GET", "/admin/v2/persistent/demo/a/p/partitions", {"partitions": 4})  # from the second time on
        west.disconnect("POST", "/admin/v2/persistent/demo/a/p/partitions")
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
