"""A pipeline between two brokers of ours begins where another one ended: ``--from-target`` and ``--skip-until``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.model.names import TopicName
from interpulse.spark.job import launch
from interpulse.spark.job.commands import command
from interpulse.spark.job.pipeline import Pipeline
from interpulse.spark.job.pipeline_config import PipelineConfig, load_pipeline_config
from interpulse.spark.job.reports.report import Report
from interpulse.testing import InProcessBroker
from tests.support.numbered_messages import publish_to
from tests.support.pipeline_turns import copy_log

TOPIC = TopicName.parse("persistent://public/default/flights")
FIRST, SECOND = (str(TOPIC.partition(index)) for index in range(2))
CURSOR = "pulsar.repl.west"
Run = Callable[..., Result]


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[tuple[InProcessBroker, InProcessBroker]]:
    with (
        InProcessBroker(tmp_path / "east", {"clusterName": "east", "replicationJob": "external"}) as east,
        InProcessBroker(tmp_path / "west", {"clusterName": "west", "brokerDeduplicationEnabled": "true"}) as west,
    ):
        yield east, west


@pytest.fixture
def config(tmp_path: Path, clusters: tuple[InProcessBroker, InProcessBroker]) -> Path:
    east, west = clusters
    path = tmp_path / "job.toml"
    path.write_text(
        f"""
        [pipeline]
        name = "p"
        state = "{tmp_path / "state"}"
        start = "earliest"
        [source]
        cluster = "east"
        service_url = "{east.service_url}"
        admin_url = "{east.web_url}"
        [target]
        cluster = "west"
        service_url = "{west.service_url}"
        admin_url = "{west.web_url}"
        [select]
        topics = ["{TOPIC}"]
        """
    )
    return path


@pytest.fixture
def run(config: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """The command up to where Spark would start, which tells how the job begins."""

    def started(config: PipelineConfig, reports: list[Report], *, supervised: bool) -> int:
        reports[0].take({"event": "job", "start": str(config.start)})
        return 0

    monkeypatch.setattr(launch, "_run", started)
    monkeypatch.setattr("os._exit", ended)

    def run(*words: str) -> Result:
        return CliRunner().invoke(command, ["--config", str(config), *words])

    return run


def ended(code: int) -> None:
    raise SystemExit(code)


def events(result: Result) -> list[dict[str, str]]:
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]


async def begin(east: InProcessBroker, west: InProcessBroker) -> None:
    for cluster in (east, west):
        async with AdminClient(cluster.web_url) as admin:
            await admin.topics.create_partitioned(TOPIC, 2)


async def copy_as_another(config: Path, east: InProcessBroker, west: InProcessBroker) -> None:
    """What another replicator of east has written, under a producer name of its own."""
    mine = load_pipeline_config(str(config))
    assert mine.target is not None
    async with AdminClient(east.web_url) as admin:
        other = Pipeline(replace(mine, name="other"), admin, mine.target, None, lambda line: None, "other")
        async with Client(east.service_url) as here, Client(west.service_url) as there:
            await copy_log(here, there, TopicName.parse(FIRST), other)


def cursors_of(east: InProcessBroker) -> dict[str, str | None]:
    async def ask() -> dict[str, str | None]:
        async with AdminClient(east.web_url) as admin:
            found = [await admin.topics.internal_stats(name) for name in (FIRST, SECOND)]
            return {
                name: stats["cursors"].get(CURSOR, {}).get("markDeletePosition")
                for name, stats in zip("12", found, strict=True)
            }

    return asyncio.run(ask())


def test_pipeline_begins_behind_what_another_replicator_has_copied(
    run: Run, config: Path, clusters: tuple[InProcessBroker, InProcessBroker]
) -> None:
    east, west = clusters
    asyncio.run(begin(*clusters))
    publish_to(east.service_url, FIRST, range(5), batching_enabled=False)
    asyncio.run(copy_as_another(config, east, west))
    publish_to(west.service_url, FIRST, range(3), batching_enabled=False)
    publish_to(east.service_url, FIRST, range(4), batching_enabled=False)
    planned = run("--dry-run", "--from-target")
    assert planned.exit_code == 0, planned.output
    assert f"  {FIRST} would begin behind 1:4, which west holds\n" in planned.stdout
    assert f"  {SECOND} would begin where its cursor is\n" in planned.stdout
    assert cursors_of(east) == {"1": None, "2": None}

    begun = run("--from-target")
    assert begun.exit_code == 0, begun.output
    assert events(begun)[1:] == [
        {"event": "takenOver", "cluster": "west", "topic": FIRST, "after": "1:4"},
        {"event": "takenOver", "cluster": "west", "topic": SECOND, "after": None},
        {"event": "job", "start": "subscription"},
    ]
    assert cursors_of(east) == {"1": "1:4", "2": "2:-1"}
    publish_to(east.service_url, FIRST, range(1), batching_enabled=False)
    run("--skip-until", f"{FIRST}=1:7")
    assert cursors_of(east)["1"] == "1:7"
    run("--from-target")
    assert cursors_of(east)["1"] == "1:7", "a cursor moves forward only"


def test_takeover_that_cannot_be_right_is_refused(
    run: Run, config: Path, tmp_path: Path, clusters: tuple[InProcessBroker, InProcessBroker]
) -> None:
    east, west = clusters
    asyncio.run(begin(*clusters))
    publish_to(east.service_url, FIRST, range(2), batching_enabled=False)
    refused = run("--skip-until", f"{TOPIC}=1:0")
    assert refused.exit_code == 2
    assert f"--skip-until: {TOPIC} is not selected; it names topic-partitions, here {FIRST}, {SECOND}" in refused.stderr
    assert "'flights' is not TOPIC=LEDGER:ENTRY" in run("--skip-until", "flights").stderr
    refused = run("--skip-until", f"{FIRST}=9:9")
    assert "west holds entries up to 9:9, and east ends at 1:1" in refused.stderr
    (tmp_path / "state" / "west" / "checkpoint").mkdir(parents=True)
    refused = run("--from-target")
    assert refused.exit_code == 2
    assert "checkpoint says where the pipeline stands" in refused.stderr
    west.stop()
    (tmp_path / "state" / "west" / "checkpoint").rmdir()
    refused = run("--from-target")
    assert refused.exit_code == 2
    assert "where to begin cannot be found out" in refused.stderr
    west.restart()


def test_cursors_are_opened_before_the_job_runs(
    config: Path, clusters: tuple[InProcessBroker, InProcessBroker]
) -> None:
    asyncio.run(begin(*clusters))
    publish_to(clusters[0].service_url, FIRST, range(2), batching_enabled=False)
    for _ in range(2):
        told = CliRunner().invoke(command, ["cursors", "--config", str(config), "--open"])
        assert told.exit_code == 0, told.output
        assert f"{FIRST}: {CURSOR} at 1:-1, 2 entries wait, kept\n" in told.stdout
    refused = CliRunner().invoke(command, ["cursors", "--config", str(config), "--open", "--remove"])
    assert (refused.exit_code, "--open stands alone" in refused.stderr) == (2, True)
