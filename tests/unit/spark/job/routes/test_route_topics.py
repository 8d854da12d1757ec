"""What is recorded of a route's lanes."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, cast

import pytest

from interpulse.client.session import Session
from interpulse.model.errors import ServiceNotReady
from interpulse.model.ids import Position
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.spark.job.pipeline_config import PipelineConfig, Selection
from interpulse.spark.job.routes.route import Route
from interpulse.spark.job.routes.route_topics import RouteTopics, TargetPresence
from interpulse.spark.lanes import LaneState
from interpulse.spark.state_files import LaneFiles

START = LaneState(-1, Position(3, 4))
KNOWN, A, B = (f"persistent://public/default/{name}" for name in ("known", "a", "b"))


async def test_lanes_are_anchored_once_and_their_file_is_not_read_at_each_look(tmp_path, monkeypatch):
    class Files(LaneFiles):
        reads = 0

        def anchors(self):
            Files.reads += 1
            return super().anchors()

    async def lane_start(session, name, lane_name, **options):
        asked.append(name)
        return START

    def at(name):
        return ClusterAddress(cluster=name, service_url="pulsar://127.0.0.1:1", admin_url="http://127.0.0.1:1")

    config = PipelineConfig(name="t", state=tmp_path, source=at("east"), target=None, select=Selection())
    route = Route(config, at("west"), "cursor")
    asked, files = list[Any](), Files(str(route.directory))
    monkeypatch.setattr(Route, "files", files)
    monkeypatch.setattr("interpulse.spark.job.routes.route_topics.lane_start", lane_start)
    monkeypatch.setattr(RouteTopics, "session", None)
    files.write_anchors({KNOWN: START})
    topics = RouteTopics(route, None, print)  # type: ignore[arg-type]
    await topics._anchor([KNOWN, A])
    reads = Files.reads
    for _ in range(3):
        await topics._anchor([KNOWN, A])
    assert Files.reads == reads
    await topics._anchor([A, B])
    assert asked == [A, B]
    assert files.anchors() == dict.fromkeys([KNOWN, A, B], START)


NAMES = [f"persistent://public/default/t{number}" for number in range(40)]


class Sender:
    """A producer in memory; ``refused`` cannot be opened, ``stuck`` fails while it is closed."""

    open_now: ClassVar[list[str]] = []
    opened: ClassVar[list[str]] = []
    opening = opening_most = 0
    refused: ClassVar[set[str]] = set()
    stuck: ClassVar[set[str]] = set()

    def __init__(self, session: Any, topic: Any, name: str, **options: Any) -> None:
        self.topic = str(topic)
        self.failure = None

    async def open(self) -> None:
        kind = type(self)
        kind.opening += 1
        kind.opening_most = max(kind.opening_most, kind.opening)
        await asyncio.sleep(0)
        kind.opening -= 1
        if self.topic in self.refused:
            raise ServiceNotReady("not now")
        self.opened.append(self.topic)
        self.open_now.append(self.topic)

    async def close(self) -> None:
        if self.topic in self.stuck:
            raise RuntimeError("a fault of ours")
        self.open_now.remove(self.topic)


@pytest.fixture
def senders(monkeypatch: pytest.MonkeyPatch) -> type[Sender]:
    fresh = type("Fresh", (Sender,), {"open_now": [], "opened": [], "refused": set(), "stuck": set()})
    monkeypatch.setattr("interpulse.spark.job.routes.route_topics.EntrySender", fresh)
    return cast(type[Sender], fresh)


async def test_many_are_opened_together_a_bounded_number_at_a_time_and_each_once(senders: type[Sender]) -> None:
    presence, session = TargetPresence("lane"), cast(Session, None)
    senders.refused.add(NAMES[3])
    await presence.keep(session, NAMES)
    assert (senders.opening_most, len(senders.opened)) == (16, 39)
    senders.refused.clear()
    await presence.keep(session, NAMES)
    assert senders.opened[39:] == [NAMES[3]]


async def test_one_that_cannot_be_left_is_logged_and_keeps_no_other(
    senders: type[Sender], caplog: pytest.LogCaptureFixture
) -> None:
    presence = TargetPresence("lane")
    await presence.keep(cast(Session, None), NAMES)
    senders.stuck.add(NAMES[0])
    await presence.leave(NAMES[:5])
    assert sorted(senders.open_now) == sorted([NAMES[0], *NAMES[5:]])
    (logged,) = caplog.records
    assert (NAMES[0] in logged.getMessage(), logged.exc_info is not None) == (True, True)
    await presence.close()
    assert senders.open_now == [NAMES[0]]
