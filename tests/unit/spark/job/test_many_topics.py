"""What five thousand topics cost the driver of one job: questions are counted, not timed."""

from types import SimpleNamespace

import pytest

from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.spark.job.pipeline_config import PipelineConfig, Selection
from interpulse.spark.job.reports.progress import BatchProgress
from interpulse.spark.job.routes import route_lag
from interpulse.spark.job.routes.route import Route
from interpulse.spark.job.routes.route_lag import RouteLag
from interpulse.spark.job.selection import select
from interpulse.spark.offsets import StreamOffset, pack_ranges, ranges_between
from interpulse.spark.options.option import Purpose
from interpulse.spark.reading.planner import Following, StreamPlanner, TopicEnd
from interpulse.spark.reading.read_options import parse_read_options

NAMES = [f"persistent://t/ns/t{number:04}" for number in range(5_000)]


class Source:
    """Each topic has one open ledger with ten entries; questions are counted."""

    def __init__(self):
        self.reached: dict[str, Position] = {}
        self.asked, self.opened, self.ends_of = 0, 0, dict.fromkeys(NAMES, Position(3, 9))

    def discover(self):
        return NAMES

    def ends(self, topics):
        self.asked += 1
        return {name: TopicEnd(self.ends_of[name]) for name in topics}

    def following(self, topic, after, upto):
        self.opened += 1
        return Following(Position(3, after.entry + 1 if after.ledger == 3 else 0), 100)

    def held(self):
        return {}

    def rates(self):
        return {}

    def copied(self):
        return self.reached

    def written(self):
        return None

    def acknowledge(self, positions):
        pass


@pytest.mark.slow
def test_stream_of_very_many_topics_asks_once_a_poll_and_each_topic_once_for_a_size():
    source = Source()
    options = {"service.url": "pulsar://x:1", "topicsFile": "/absent", "mode": "entry", "startingOffsets": "earliest"}
    planner = StreamPlanner(parse_read_options(options, Purpose.STREAM_READ), source)  # type: ignore[arg-type]
    at = planner.initial_offset(0.0)
    at = planner.latest_offset(at, 0.0, entries_max=40_000, bytes_max=64 << 20)
    copied = 0
    for turn in range(1, 20):
        end = planner.latest_offset(at, float(turn), entries_max=40_000, bytes_max=64 << 20)
        ranges = ranges_between(at, StreamOffset.from_json(end.to_json()))
        tasks = pack_ranges(ranges, 2)
        assert len(tasks) <= 2
        count = sum(each.upto.entry - max(each.after.entry, -1) for each in ranges)
        assert count <= 40_000
        copied, at = copied + count, end
    assert copied == 50_000
    assert source.opened == len(NAMES), "a size is asked once of each"
    before = source.asked
    for turn in range(300):  # as Spark asks while nothing comes
        assert planner.latest_offset(at, 100 + turn / 100, entries_max=40_000, bytes_max=64 << 20) == at
    assert source.asked - before <= 60


def lag_of_caught_up(state, asked):
    """Return the lag of a route that has copied everything; ``asked`` gets the names for which the source is asked."""

    class Admin:
        topics = None

        async def internal_stats(self, name):
            asked.append(name)
            cursors = {"c": {"markDeletePosition": "3:9"}}
            return {"lastConfirmedEntry": "3:9", "ledgers": [{"ledgerId": 3, "entries": 0}], "cursors": cursors}

    admin = Admin()
    admin.topics = admin
    east, west = (
        ClusterAddress(cluster=name, service_url=f"pulsar://{name}:1", admin_url=f"http://{name}:2")
        for name in ("east", "west")
    )
    config = PipelineConfig(name="t", state=state, source=east, target=west, select=Selection(topics=("x",)))
    return RouteLag(Route(config, west, "c"), admin)  # type: ignore[arg-type]


async def test_lag_of_very_many_topics_is_asked_of_some_in_each_turn_and_of_all_after_a_while(tmp_path):
    asked: list[str] = []
    lag = lag_of_caught_up(tmp_path, asked)
    for turn in range(1, 26):
        await lag.refresh(NAMES, {})
        assert len(asked) == 200 * turn
    assert sorted(asked) == NAMES
    assert all(lag.of(name) == (0, 0, None) for name in NAMES)
    await lag.refresh(NAMES, {})
    assert len(asked) == len(NAMES), "nothing is to be copied, so the source is left alone for a while"


async def test_lag_is_asked_as_soon_as_spark_reports_nothing_any_more(tmp_path, monkeypatch):
    asked: list[str] = []
    now = [100.0]
    monkeypatch.setattr(route_lag, "time", SimpleNamespace(monotonic=lambda: now[0]))
    lag = lag_of_caught_up(tmp_path, asked)
    lag.note_progress(BatchProgress("q", 0, 10))
    for second in range(4):
        assert not asked
        now[0] = 100.0 + second
        await lag.refresh(["a"], {})
    assert asked == ["a"]


async def test_selection_for_several_remotes_asks_each_topic_once(monkeypatch):
    """Clusters that topics go to are told by namespace, shapes by topic: three remotes cost no more than one."""
    calls = []

    class Answers:
        def __getattr__(self, name):
            async def answer(*given, **options):
                calls.append(name)
                return ANSWERS[name]

            return answer

    class Admin:
        tenants = namespaces = topics = clusters = Answers()

    class Policies:
        replication_clusters = ("east", "north", "south", "west")

    class Count:
        partitions = 0

    class Record:
        broker_service_url = "pulsar://c:1"
        service_url = "http://c:2"

    ANSWERS = {
        "list_partitioned": [],
        "topics_with_clusters": {},
        "partitioned_metadata": Count,
        "list": NAMES,
        "policies": Policies,
    }

    async def namespaces(admin):
        return {TopicName.parse(NAMES[0]).namespace_name: Policies}

    async def address(config, admin, remote):
        calls.append("address")
        return ClusterAddress(cluster=remote, service_url="pulsar://c:1", admin_url="http://c:2")

    monkeypatch.setattr("interpulse.spark.job.selection._namespaces", namespaces)
    monkeypatch.setattr("interpulse.spark.job.selection._address", address)
    east = ClusterAddress(cluster="east", service_url="pulsar://e:1", admin_url="http://e:2")
    config = PipelineConfig(name="t", state="/x", source=east, target=None, select=Selection(from_policies=True))  # type: ignore[arg-type]
    found = await select(config, Admin())  # type: ignore[arg-type]
    assert sorted(found) == ["north", "south", "west"]
    assert all(len(selection.topics) == 5_000 for selection in found.values())
    assert calls.count("partitioned_metadata") == 5_000
    assert len(calls) - 5_000 <= 6
