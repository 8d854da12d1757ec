"""The query of a route when it cannot be started."""

from interpulse.spark.job.pipeline_config import ClusterAddress, PipelineConfig, Selection
from interpulse.spark.job.route import Route
from interpulse.spark.job.route_query import RouteQuery


class Session:
    """A Spark session that the program was given, as under ``spark-submit``."""

    def __init__(self, **conf):
        self.conf = {key.replace("_", "."): value for key, value in conf.items()}
        self.asked = 0

    @property
    def readStream(self):
        self.asked += 1
        raise RuntimeError("no Java")


def route(tmp_path):
    east, west = (
        ClusterAddress(cluster=name, service_url=f"pulsar://{name}:1", admin_url=f"http://{name}:2")
        for name in ("east", "west")
    )
    config = PipelineConfig(name="t", state=tmp_path, source=east, target=west, select=Selection(topics=("t/ns/a",)))
    return Route(config, west, "interpulse.t")


async def test_session_with_speculation_is_refused_for_good(tmp_path):
    events, session = [], Session(spark_speculation="true")
    query = RouteQuery(route(tmp_path), events.append)
    await query.keep(session)
    (event,) = events
    assert event["permanent"]
    assert "spark.speculation=true" in event["error"]
    assert session.asked == 0
