"""Provisioning and adjustment while the other cluster fails, or this one ends: told, tried again, nothing half done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.replication.connect import connect
from interpulse.storage.api import Change, MetadataUnavailable, Put
from tests.support.joined_clusters import BOTH, done, join, join_both
from tests.support.rest_broker import RestBroker, rest_broker
from tests.support.rest_client import call
from tests.support.stub_web import StubWeb

REPLICATION = "namespaces/demo/a/replication"
ADJUST = f"{REPLICATION}?adjustNamespaceLevelPoliciesAutomatically=true"
TOPIC = "persistent/demo/a/x"
METADATA = f"/admin/v2/{TOPIC}/partitions"
CREATE = f"/admin/v2/{TOPIC}"


@pytest.fixture
async def east() -> AsyncIterator[RestBroker]:
    async with rest_broker(BrokerConfig(cluster_name="east"), provisioning=True) as broker:
        yield broker


@pytest.fixture
async def west() -> AsyncIterator[RestBroker]:
    async with rest_broker(BrokerConfig(cluster_name="west")) as broker:
        yield broker


async def record_with(east: RestBroker, topic: str, *words: str) -> dict[str, Any]:
    """The status of the topic as soon as its reason has these words."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(60):
        while not found or not all(word in (found[0]["reason"] or "") for word in words):
            await asyncio.sleep(0.02)
            found = (await done(east, "GET", f"{topic}/replication/status")).json
    return found[0]


def fail(web: StubWeb, method: str, path: str, trouble: str) -> None:
    match trouble:
        case "500":
            web.answer(method, path, {"reason": "java.lang.NullPointerException"}, status=500)
        case "html-500":
            web.answer_raw(method, path, b"<html>oops</html>", status=500, content_type="text/html")
        case "html-200":
            web.answer_raw(method, path, b"<html>Please log in</html>", content_type="text/html")
        case "307":
            web.answer_raw(method, path, b"", status=307, headers={"Location": f"{web.url}{path}"})
        case "401":
            web.answer(method, path, {"reason": "HTTP 401 Authentication required: token expired"}, status=401)
        case "nonsense":
            web.answer(method, path, ["ok"])
        case "limit":
            web.answer(method, path, {"reason": "Exceed maximum number of topics in namespace."}, status=412)
        case "disconnect":
            web.disconnect(method, path)
        case "never":
            web.say_nothing(method, path)


WORDS: Mapping[str, str] = {
    "500": "NullPointerException",
    "html-500": "Internal Server Error",
    "html-200": "is no broker",
    "307": "redirects more than",
    "401": "token expired",
    "nonsense": "with something other than an object",
    "limit": "Exceed maximum number of topics",
    "disconnect": "failed",
    "never": "did not answer within 1000 ms",
}
REMEDIES: Mapping[str, str] = {"401": "renew the token", "limit": "end on west what the reason names"}
STEPS: Mapping[str, Sequence[str]] = {
    "looking": [each for each in WORDS if each != "limit"],
    "creating": [each for each in WORDS if each != "nonsense"],
    "verifying": ["500", "nonsense", "disconnect", "never"],
}


def be_impatient(east: RestBroker) -> None:
    """As if the ten seconds for an answer were over sooner."""
    east.app.parts.tenancy.links._connect = partial(connect, timeout_ms=1000)


@pytest.mark.parametrize(
    ("step", "trouble"), [pytest.param(step, each, id=f"{step}-{each}") for step in STEPS for each in STEPS[step]]
)
async def test_provisioning_that_fails_says_why_creates_nothing_else_and_ends_by_itself(
    east: RestBroker, step: str, trouble: str
) -> None:
    with StubWeb() as web:
        if step != "looking":
            web.answer("GET", METADATA, {"reason": "Topic x not found"}, status=404)
        fail(web, "PUT" if step == "creating" else "GET", CREATE if step == "creating" else METADATA, trouble)
        if trouble == "never":
            be_impatient(east)
        await join(east, web.url)
        await done(east, "PUT", TOPIC)
        await done(east, "POST", REPLICATION, BOTH)
        record = await record_with(east, TOPIC, WORDS[trouble])
        assert record["state"] == ("DISCONNECTED" if trouble in ("disconnect", "never") else "HELD")
        assert record["nextRetryAt"] >= record["since"] > 0
        assert REMEDIES.get(trouble, "west") in record["remedy"]
        status = (await done(east, "GET", f"{TOPIC}/stats")).json["replication"]["west"]["status"]
        assert status["state"] == record["state"]
        web.answer("PUT", CREATE, status=204)
        web.answer("GET", METADATA, {"partitions": 0})
        await record_with(east, TOPIC, "the topic exists there")
        await east.app.parts.replication.remote_topics.stop()
        await east.app.parts.tenancy.links.close()  # the stub waits for its clients
        assert {(asked.method, asked.target.partition("?")[0]) for asked in web.asked} <= {
            ("GET", METADATA),
            ("PUT", CREATE),
        }


async def test_creation_whose_answer_never_comes_is_not_done_twice(east: RestBroker) -> None:
    be_impatient(east)
    with StubWeb() as web:
        web.answer("GET", METADATA, {"reason": "Topic x not found"}, status=404)
        web.answer("GET", METADATA, {"partitions": 0})
        web.say_nothing("PUT", CREATE)
        await join(east, web.url)
        await done(east, "PUT", TOPIC)
        await done(east, "POST", REPLICATION, BOTH)
        await record_with(east, TOPIC, "the topic exists there")
        await east.app.parts.replication.remote_topics.stop()
        await east.app.parts.tenancy.links.close()
        methods = [asked.method for asked in web.asked]
        assert (methods[:2], set(methods[2:])) == (["GET", "PUT"], {"GET"})


PARTITIONED = "persistent/demo/a/p"
COUNT = f"/admin/v2/{PARTITIONED}/partitions"
CALLS: Mapping[str, tuple[str, Any, str]] = {
    "set": (f"{PARTITIONED}/replication", BOTH, "PUT"),
    "grow": (f"{PARTITIONED}/partitions", 4, "POST"),
}
"""Path, body, and the request that changes something there."""


TROUBLES = ("500", "html-200", "307", "401", "disconnect", "never")


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize(("step", "trouble"), [*product(("looking", "changing"), TROUBLES), ("looking", "nonsense")])
async def test_call_that_needs_the_other_cluster_when_that_fails_then_nothing_is_changed_here(
    kind: str, step: str, trouble: str
) -> None:
    path, body, method = CALLS[kind]
    with StubWeb() as web:
        async with rest_broker(BrokerConfig(cluster_name="east")) as east:
            if trouble == "never":
                be_impatient(east)
            if step == "changing" and kind == "set":
                web.answer("GET", COUNT, {"reason": "Topic p not found"}, status=404)
            elif step == "changing":
                web.answer("GET", COUNT, {"partitions": 2})
            fail(web, "GET" if step == "looking" else method, COUNT, trouble)
            await join(east, web.url)
            await done(east, "PUT", f"{PARTITIONED}/partitions", 2)
            if kind == "grow":
                await done(east, "POST", REPLICATION, BOTH)
            reply = await call(east.web_url, "POST", path, body)
            assert (reply.status, f"Cluster west at {web.url}: " in reply.reason) == (503, True), reply
            assert WORDS[trouble] in reply.reason
            assert (await done(east, "GET", f"{PARTITIONED}/partitions")).json["partitions"] == 2
            assert not (await done(east, "GET", f"{PARTITIONED}/replication")).body


async def test_namespace_that_is_deleted_there_is_asked_for_and_not_created(east: RestBroker, west: RestBroker) -> None:
    await join_both(east, west)
    await done(east, "POST", REPLICATION, BOTH)
    await done(east, "PUT", TOPIC)
    await record_with(east, TOPIC, "the topic exists there")
    await done(west, "DELETE", TOPIC)
    await done(west, "DELETE", "namespaces/demo/a")
    await done(east, "PUT", "persistent/demo/a/y")
    record = await record_with(east, "persistent/demo/a/y", "namespace demo/a does not exist on the remote cluster")
    assert (record["state"], record["remedy"]) == ("HELD", "create demo/a there")
    assert (await call(west.web_url, "GET", "namespaces/demo")).json == []
    await done(west, "PUT", "namespaces/demo/a")
    await record_with(east, "persistent/demo/a/y", "the topic exists there")


class Dying:
    """From a commit on that concerns the namespace's policies nothing is stored any more, as if the broker was killed.

    ``applied``: that one commit still is.
    """

    def __init__(self, broker: RestBroker, *, applied: bool) -> None:
        self._commit = broker.store.commit
        self._applied = applied
        self._dead = False
        broker.store.commit = self.commit  # type: ignore[method-assign]

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        fatal = any(isinstance(each, Put) and each.key == "/admin/policies/demo/a" for each in changes)
        if not self._dead and (self._applied or not fatal):
            await self._commit(changes, expect)
        self._dead = self._dead or fatal
        if self._dead:
            raise MetadataUnavailable("the process is gone")


@pytest.mark.parametrize("applied", [False, True], ids=["before", "after"])
async def test_broker_that_ends_while_an_adjustment_is_stored_leaves_what_the_preview_shows(
    east: RestBroker, west: RestBroker, applied: bool
) -> None:
    await join_both(east, west)
    await done(east, "PUT", "persistent/demo/a/p/partitions", 4)
    await done(west, "PUT", "persistent/demo/a/p/partitions", 2)
    await done(east, "PUT", "namespaces/demo/a/schemaCompatibilityStrategy", "BACKWARD")
    dying = Dying(east, applied=applied)
    assert (await call(east.web_url, "POST", ADJUST, BOTH)).status >= 500
    del east.store.commit  # it is started again on what was stored
    assert dying is not None
    stored = await east.store.get(keys.namespace_policies(TopicName.parse("demo/a/p").namespace_name))
    assert stored is not None
    assert list(NamespacePolicies.load(stored.value).replication_clusters) == (BOTH if applied else ["east"])
    assert (await done(west, "GET", "persistent/demo/a/p/partitions")).json["partitions"] == 4
    preview = (await call(east.web_url, "POST", f"{REPLICATION}?preview=true", BOTH)).json
    assert (preview["outcome"], preview["addedClusters"]) == ("READY", [] if applied else ["west"])
    await done(east, "POST", ADJUST, BOTH)
    stats = (await done(east, "GET", "persistent/demo/a/p-partition-0/stats")).json
    assert list(stats["replication"]) == ["west"]
