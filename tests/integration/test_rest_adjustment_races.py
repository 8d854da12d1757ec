"""Adjustment while others change the same things: operators, other sources, a deletion of the namespace."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from tests.support.adjustable_namespace import (
    ADJUST,
    ALL_CHANGES,
    POLICIES,
    PREVIEW,
    differ,
    in_between,
    kinds,
    state,
    stored,
)
from tests.support.joined_clusters import BOTH, done, join_both
from tests.support.rest_broker import RestBroker, rest_broker
from tests.support.rest_client import call
from tests.support.stub_web import Asked, passed_on


async def test_two_operators_at_once_end_as_one(east: RestBroker, west: RestBroker) -> None:
    """Each change is asked for twice, since both have made their plan before either applies the first one."""
    await differ(east, west)
    first_changes = threading.Barrier(2)
    changes: list[str] = []

    def meet(asked: Asked) -> None:
        if asked.method != "GET":
            changes.append(asked.target.partition("?")[0])
        if asked.method == "POST" and asked.target == f"{POLICIES}/autoTopicCreation":
            first_changes.wait(10)

    with in_between(west, meet) as url:
        await done(east, "POST", "clusters/west", {"serviceUrl": url})
        replies = await asyncio.gather(*(call(east.web_url, "POST", ADJUST, BOTH) for _ in range(2)))
    assert sorted(Counter(changes).values()) == [2] * len(ALL_CHANGES), changes
    assert [(each.status, each.json["applied"]) for each in replies] == [(200, True)] * 2, replies
    assert await stored(east) == BOTH
    assert set((await state(west))["counts"].values()) == {4}


async def test_two_sources_that_want_different_things_are_told_who_lost(east: RestBroker, west: RestBroker) -> None:
    """The policy of the one that came last holds; the other one is refused, and its preview shows what is left."""
    strategy = "namespaces/demo/a/schemaCompatibilityStrategy"
    made, overwritten = threading.Event(), threading.Event()

    def meet(asked: Asked) -> None:
        if asked.method == "GET" and made.is_set():
            overwritten.wait(10)  # the second look, after both changes
        elif asked.method != "GET":
            made.set()

    async with rest_broker(BrokerConfig(cluster_name="north")) as north:
        await join_both(east, west)
        await done(north, "PUT", "clusters/west", {"serviceUrl": west.web_url})
        await done(north, "PUT", "tenants/demo", {"allowedClusters": ["north", "west"]})
        await done(north, "PUT", "namespaces/demo/a")
        await done(east, "PUT", strategy, "BACKWARD")
        await done(north, "PUT", strategy, "FORWARD")
        with in_between(west, meet) as url:
            await done(east, "POST", "clusters/west", {"serviceUrl": url})
            lost = asyncio.create_task(call(east.web_url, "POST", ADJUST, BOTH))
            assert await asyncio.to_thread(made.wait, 10)
            async with asyncio.timeout(60):
                while (await done(west, "GET", strategy)).json != "BACKWARD":  # noqa: ASYNC110  # passed on after `made`
                    await asyncio.sleep(0.01)
            await done(north, "POST", ADJUST, ["north", "west"])
            overwritten.set()
            reply = await lost
            assert (reply.status, reply.json["applied"]) == (409, False)
            assert "SCHEMA_COMPATIBILITY_STRATEGY of demo/a on west" in reply.reason
            assert await stored(east) == ["east"]
            assert kinds(await done(east, "POST", PREVIEW, BOTH)) == ["SCHEMA_COMPATIBILITY_STRATEGY"]
    assert (await done(west, "GET", strategy)).json == "FORWARD"


@pytest.mark.parametrize("looking_again", [False, True], ids=["before-the-first-change", "after-the-last"])
async def test_namespace_deleted_there_between_plan_and_end_is_told_and_not_created(
    east: RestBroker, west: RestBroker, looking_again: bool
) -> None:
    await join_both(east, west)
    strategy = "namespaces/demo/a/schemaCompatibilityStrategy"
    await done(east, "PUT", strategy, "BACKWARD")
    await done(east, "PUT", "persistent/demo/a/only-here/partitions", 3)
    changed = deleted = False

    def meet(asked: Asked) -> None:
        nonlocal changed, deleted
        changing = asked.method != "GET"
        if not deleted and (changed if looking_again else changing):
            deleted = True
            passed_on(Asked("DELETE", POLICIES, None, {}), west.web_url)
        changed = changed or changing

    with in_between(west, meet) as url:
        await done(east, "POST", "clusters/west", {"serviceUrl": url})
        reply = await call(east.web_url, "POST", ADJUST, BOTH)
        assert (reply.status, reply.json["applied"]) == (409 if looking_again else 404, False), reply
        assert "Namespace" in reply.reason
        (change,) = reply.json["clusters"][0]["changes"]
        assert change["status"] == ("DONE" if looking_again else "FAILED")
        assert kinds(await done(east, "POST", PREVIEW, BOTH), "conflicts") == ["NAMESPACE_MISSING"]
        assert await stored(east) == ["east"]
        assert (await done(west, "GET", "namespaces/demo")).json == []
        await done(west, "PUT", "namespaces/demo/a")
        assert (await done(east, "POST", ADJUST, BOTH)).json["applied"] is True
