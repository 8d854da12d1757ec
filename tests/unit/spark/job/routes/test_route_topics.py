"""What is recorded of a route's lanes."""

from typing import Any

from interpulse.model.ids import Position
from interpulse.spark.job.pipeline_config import ClusterAddress, PipelineConfig, Selection
from interpulse.spark.job.routes.route import Route
from interpulse.spark.job.routes.route_topics import RouteTopics
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
