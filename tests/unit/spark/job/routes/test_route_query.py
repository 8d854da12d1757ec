"""The query of a route when it cannot be started."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from interpulse.model.ids import Position
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.replication.position_runs import Run
from interpulse.spark.job.pipeline_config import PipelineConfig, Selection, SubscriptionSettings
from interpulse.spark.job.routes.route import Route
from interpulse.spark.job.routes.route_query import RouteQuery


class Session:
    """A Spark session that the program was given, as under ``spark-submit``."""

    def __init__(self, **conf):
        self.conf = {key.replace("_", "."): value for key, value in conf.items()}
        self.asked = 0

    @property
    def readStream(self):
        self.asked += 1
        raise RuntimeError("no Java")


def route(tmp_path, **settings):
    east, west = (
        ClusterAddress(cluster=name, service_url=f"pulsar://{name}:1", admin_url=f"http://{name}:2")
        for name in ("east", "west")
    )
    select = Selection(topics=("t/ns/a",))
    config = PipelineConfig(name="t", state=tmp_path, source=east, target=west, select=select, **settings)
    return Route(config, west, "interpulse.t")


async def test_session_with_speculation_is_refused_for_good(tmp_path):
    events, session = list[Any](), Session(spark_speculation="true")
    query = RouteQuery(route(tmp_path), lambda event, **details: events.append(details))
    await query.keep(session)  # type: ignore[arg-type]
    (event,) = events
    assert event["permanent"]
    assert "spark.speculation=true" in event["error"]
    assert session.asked == 0


async def test_query_to_a_target_that_is_away_is_started_again_when_it_answers(tmp_path, monkeypatch):
    """Its tasks would wait in the places that those of other clusters need."""
    started = []

    def begin(query, spark):
        started.append(spark)
        raise RuntimeError("NotConnected: west is away")

    monkeypatch.setattr(RouteQuery, "_begin", begin)
    monkeypatch.setattr("interpulse.spark.job.routes.route_query._BACKOFF_FIRST_S", 0.0)
    query = RouteQuery(route(tmp_path), lambda event, **details: None)
    for is_away, starts in ((True, 1), (True, 1), (False, 2), (True, 2)):
        await query.keep(Session(), is_away=is_away)  # type: ignore[arg-type]
        assert len(started) == starts
    assert query.failure is not None
    assert "west is away" in query.failure.reason


class Starting(Session):
    """A Spark session that takes the options of a query, and does not start it."""

    sparkContext = SimpleNamespace(master="local[4]", defaultParallelism=4)
    streams = SimpleNamespace(active=())
    dataSource = SimpleNamespace(register=lambda kind: None)
    readStream = property(lambda self: self)

    def format(self, name):
        return self

    def options(self, **options):
        self.taken = options
        return self


@pytest.mark.parametrize("is_synchronised", [True, False])
async def test_positions_of_copies_are_collected_for_synchronised_subscriptions_only(
    tmp_path, monkeypatch, is_synchronised
):
    """Those that were collected before are deleted, because no one will read them."""
    monkeypatch.setattr("interpulse.spark.job.routes.route_query.starting_a_query", nullcontext)
    runs = {"a": [Run(Position(1, 2), Position(3, 4), 5)]}
    settings = SubscriptionSettings(sync="marked" if is_synchronised else "none")
    copied, session = route(tmp_path, subscriptions=settings), Starting()
    copied.files.positions.write(runs, writer="1-0")
    await RouteQuery(copied, lambda event, **details: None).keep(session)  # type: ignore[arg-type]
    assert session.taken["positionRuns"] == str(is_synchronised).lower()
    assert copied.files.positions.read_new() == (runs if is_synchronised else {})
