"""kill -9 of the broker in the middle of an adjustment (PIP-433): what is left is what the preview shows, and the
command is simply repeated."""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from tests.support.rest_broker import rest_broker
from tests.support.rest_client import Reply, call
from tests.support.standalone_process import StandaloneProcess
from tests.support.stub_web import DISCONNECT, Answer, Asked, StubWeb, passed_on

pytestmark = pytest.mark.slow

ARGUMENTS = ("--cluster-name", "east", "--set", "replicationJob=external")
BOTH = ["east", "west"]
SECONDS_MAX = 120

CHANGES = {
    "AUTO_TOPIC_CREATION": "autoTopicCreation",
    "IS_ALLOW_AUTO_UPDATE_SCHEMA": "isAllowAutoUpdateSchema",
    "SCHEMA_COMPATIBILITY_STRATEGY": "schemaCompatibilityStrategy",
    "TOPIC_PARTITIONS of __change_events": "__change_events/partitions",
    "TOPIC_PARTITIONS of p": "p/partitions",
}
"""The changes in their order, and what the path of each ends with."""


@dataclass
class Gate:
    """Passes on what east asks west, and holds the awaited request, or its answer, until east is killed."""

    west_url: str
    awaited: Callable[[Asked], bool] = lambda asked: False
    answered: bool = False
    """Hold the answer, not the request."""
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def await_(self, awaited: Callable[[Asked], bool], *, answered: bool) -> None:
        self.awaited, self.answered = awaited, answered
        self.reached, self.released = threading.Event(), threading.Event()

    def __call__(self, asked: Asked) -> Answer:
        stops = not self.reached.is_set() and self.awaited(asked)
        released = self.released
        if stops and not self.answered:
            self._hold(released)
            return DISCONNECT  # east is dead, and the request never arrived
        answer = passed_on(asked, self.west_url)
        if stops and self.answered:
            self._hold(released)
        return answer

    def _hold(self, released: threading.Event) -> None:
        self.reached.set()
        assert released.wait(SECONDS_MAX), "the broker was not killed"


@dataclass
class Clusters:
    """East is a process that is killed and started again; west lives on in this one."""

    data_dir: Path
    east: StandaloneProcess
    west_url: str
    gate: Gate

    async def ask(self, method: str, path: str, body: Any = None, *, west: bool = False) -> Reply:
        reply = await call(self.west_url if west else self.east.web_url, method, path, body)
        assert reply.status < 300, (method, path, reply)
        return reply

    async def differ(self, namespace: str) -> None:
        """A namespace on both, with everything that can be adjusted."""
        for west in (False, True):
            await self.ask("PUT", f"namespaces/{namespace}", west=west)
            for name in ("p", "__change_events"):
                await self.ask("PUT", f"persistent/{namespace}/{name}/partitions", 2 if west else 4, west=west)
        await self.ask("PUT", f"persistent/{namespace}/only-here")
        override = {"allowAutoTopicCreation": False}
        await self.ask("POST", f"namespaces/{namespace}/autoTopicCreation", override, west=True)
        await self.ask("PUT", f"namespaces/{namespace}/schemaCompatibilityStrategy", "BACKWARD")
        switch = "isAllowAutoUpdateSchema?allowAutoUpdateSchemaWithReplicator=false"
        await self.ask("POST", f"namespaces/{namespace}/{switch}", False)

    async def adjust_and_kill(self, namespace: str) -> None:
        """Kill east at the gate's moment, whatever has become of its answer, and start it again."""
        adjusting = asyncio.create_task(self._adjust_until_killed(namespace))
        assert await asyncio.to_thread(self.gate.reached.wait, SECONDS_MAX), "the moment did not come"
        await self.kill_and_start()
        await adjusting

    async def kill_and_start(self) -> None:
        self.east.kill()
        self.gate.released.set()
        self.east = await start(self.data_dir)

    async def _adjust_until_killed(self, namespace: str) -> None:
        try:
            await call(self.east.web_url, "POST", adjusted(namespace), BOTH)
        except (OSError, http.client.HTTPException):
            return  # no answer any more, or half of one

    async def outstanding(self, namespace: str) -> list[str]:
        """What the preview still wants to change."""
        plan = (await self.ask("POST", f"namespaces/{namespace}/replication?preview=true", BOTH)).json
        assert plan["outcome"] != "CONFLICT"
        changes = [change for cluster in plan["clusters"] for change in cluster["changes"]]
        topics = [each.get("topic", "").rpartition("/")[2] for each in changes]
        return [each["kind"] + (f" of {topic}" if topic else "") for each, topic in zip(changes, topics, strict=True)]

    async def replication(self, namespace: str) -> list[str]:
        return list((await self.ask("GET", f"namespaces/{namespace}/replication")).json)

    async def topics_of_west(self, namespace: str) -> set[str]:
        names = (await self.ask("GET", f"persistent/{namespace}?includeSystemTopic=true", west=True)).json
        return {name.rpartition("/")[2].partition("-partition-")[0] for name in names}

    async def finish(self, namespace: str) -> None:
        """Repeating the command ends it, and every partition keeps what comes from now on."""
        assert (await self.ask("POST", adjusted(namespace), BOTH)).json["applied"] is True
        assert await self.replication(namespace) == BOTH
        stats = (await self.ask("GET", f"persistent/{namespace}/p-partition-3/stats")).json
        assert list(stats["replication"]) == ["west"]


def adjusted(namespace: str) -> str:
    return f"namespaces/{namespace}/replication?adjustNamespaceLevelPoliciesAutomatically=true"


async def start(data_dir: Path) -> StandaloneProcess:
    """In a thread, as its end: west answers here, and is asked meanwhile."""
    return await asyncio.to_thread(StandaloneProcess, data_dir, *ARGUMENTS)


@asynccontextmanager
async def two_clusters(data_dir: Path) -> AsyncIterator[Clusters]:
    async with rest_broker(BrokerConfig(cluster_name="west")) as west, AsyncExitStack() as ending:
        gate = Gate(west.web_url)
        web = StubWeb(otherwise=gate)
        web.__enter__()
        ending.push_async_callback(asyncio.to_thread, web.__exit__, None, None, None)
        found = Clusters(data_dir, await start(data_dir), west.web_url, gate)
        try:
            await found.ask("PUT", "clusters/west", {"serviceUrl": web.url})
            await found.ask("PUT", "clusters/east", {"serviceUrl": "http://127.0.0.1:1"}, west=True)
            for side in (False, True):
                await found.ask("PUT", "tenants/demo", {"allowedClusters": BOTH}, west=side)
            yield found
        finally:
            gate.released.set()
            await asyncio.to_thread(found.east.stop)


async def test_broker_killed_at_every_change_leaves_what_the_preview_shows_and_is_repeated(tmp_path: Path) -> None:
    """Killed before a change was made there, and by turns after that, but before it was told."""
    async with two_clusters(tmp_path / "east") as clusters:
        for number, (change, path) in enumerate(CHANGES.items()):
            namespace, answered = f"demo/killed-{number}", number % 2 == 1
            await clusters.differ(namespace)
            assert await clusters.outstanding(namespace) == list(CHANGES)
            clusters.gate.await_(partial(is_change, f"{namespace}/{path}"), answered=answered)
            await clusters.adjust_and_kill(namespace)
            assert await clusters.replication(namespace) == ["east"]
            assert await clusters.outstanding(namespace) == list(CHANGES)[number + answered :], change
            assert await clusters.topics_of_west(namespace) == {"p", "__change_events"}, "only what is replicated"
            await clusters.finish(namespace)


async def test_broker_killed_before_storing_the_clusters_has_not_stored_them(tmp_path: Path) -> None:
    """The changes are made, and looked at again; the answer to that look does not come."""
    async with two_clusters(tmp_path / "east") as clusters:
        await clusters.differ("demo/before")
        clusters.gate.await_(SecondLook("demo/before"), answered=True)
        await clusters.adjust_and_kill("demo/before")
        assert await clusters.replication("demo/before") == ["east"]
        assert await clusters.outstanding("demo/before") == []
        await clusters.finish("demo/before")


async def test_broker_killed_after_storing_the_clusters_has_stored_them(tmp_path: Path) -> None:
    """Killed once a first topic is looked for on west, which stored clusters alone lead to; then after the answer."""
    async with two_clusters(tmp_path / "east") as clusters:
        await clusters.differ("demo/shown")
        clusters.gate.await_(partial(looks_for_topic, "demo/shown"), answered=False)
        await clusters.adjust_and_kill("demo/shown")
        await clusters.differ("demo/answered")
        assert (await clusters.ask("POST", adjusted("demo/answered"), BOTH)).json["applied"] is True
        await clusters.kill_and_start()
        for namespace in ("demo/shown", "demo/answered"):
            assert await clusters.replication(namespace) == BOTH
            assert await clusters.outstanding(namespace) == []
            await clusters.finish(namespace)


class SecondLook:
    """The moment when the partitioned topics have been asked for their counts after the last change."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._changed = False

    def __call__(self, asked: Asked) -> bool:
        if asked.method == "GET":
            return self._changed and ends(asked, f"persistent/{self._namespace}/partitioned")
        self._changed = self._changed or ends(asked, f"{self._namespace}/p/partitions")
        return False


def is_change(path: str, asked: Asked) -> bool:
    return asked.method != "GET" and ends(asked, path)


def looks_for_topic(namespace: str, asked: Asked) -> bool:
    """East follows the stored clusters, and asks whether a topic of the namespace is on west."""
    path, _, query = asked.target.partition("?")
    is_topic = path.startswith(f"/admin/v2/persistent/{namespace}/") and path.endswith("/partitions")
    return asked.method == "GET" and is_topic and query == "checkAllowAutoCreation=false"


def ends(asked: Asked, path: str) -> bool:
    return asked.target.partition("?")[0].endswith(path)
