"""What one can ask of a pipeline between two brokers of ours, at both front doors, while no job runs."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.clock import now_ms
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.spark.__main__ import main
from interpulse.spark.job.commands import command
from interpulse.spark.job.pipeline import Pipeline
from interpulse.spark.job.pipeline_config import load_pipeline_config
from interpulse.spark.offsets import StreamOffset
from interpulse.spark.state_files import LaneFiles
from interpulse.sync import Client as SyncClient
from interpulse.testing import InProcessBroker
from tests.support.numbered_messages import publish_to
from tests.support.pipeline_turns import copy_log

TOPIC = TopicName.parse("persistent://public/default/flights")
FIRST, SECOND = (str(TOPIC.partition(index)) for index in range(2))
OTHER = "persistent://public/default/other"
CURSOR = "pulsar.repl.west"
Ask = Callable[..., Result]


@pytest.fixture
def east(tmp_path: Path) -> Iterator[InProcessBroker]:
    with InProcessBroker(tmp_path / "east", {"clusterName": "east", "replicationJob": "external"}) as east:
        asyncio.run(begin(east))
        yield east


async def begin(east: InProcessBroker) -> None:
    """Two partitions, each with a cursor of the pipeline and a message in front of it."""
    async with AdminClient(east.web_url) as admin:
        await admin.topics.create_partitioned(TOPIC, 2)
        await admin.topics.create(OTHER)
        for name in (FIRST, SECOND):
            await admin.topics.create_subscription(name, CURSOR, MessageId(*EARLIEST))


@pytest.fixture
def west(tmp_path: Path) -> Iterator[InProcessBroker]:
    with InProcessBroker(tmp_path / "west", {"clusterName": "west"}) as west:
        yield west


@pytest.fixture
def config(tmp_path: Path, east: InProcessBroker, west: InProcessBroker) -> Path:
    path = tmp_path / "job.toml"
    path.write_text(
        f"""
        [pipeline]
        name = "p"
        state = "{tmp_path}"
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


@pytest.fixture(params=[command, main], ids=["interpulse-replicate", "python-m"])
def ask(request: pytest.FixtureRequest, config: Path) -> Ask:
    door: click.Group = request.param

    def run(*words: str) -> Result:
        return CliRunner().invoke(door, [words[0], "--config", str(config), *words[1:]])

    return run


@pytest.fixture(autouse=True)
def _log_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def commit(state: Path, **done: Position) -> None:
    """As Spark writes the end of a micro-batch."""
    for kind in ("offsets", "commits"):
        (state / "west" / "checkpoint" / kind).mkdir(parents=True, exist_ok=True)
    positions = {FIRST: done["first"], SECOND: done["second"]}
    text = json.dumps(StreamOffset(positions).to_json())
    (state / "west" / "checkpoint" / "offsets" / "7").write_text(f"v1\n{{}}\n{text}")
    (state / "west" / "checkpoint" / "offsets" / "8").write_text("v1\n{}\n-")
    (state / "west" / "checkpoint" / "commits" / "7").write_text("v1\n{}")
    (state / "west" / "checkpoint" / "commits" / ".7.crc").write_text("")


async def copy_as_the_job(config: Path, east: InProcessBroker, west: InProcessBroker) -> None:
    """What a task does before its batch is committed."""
    pipeline_config = load_pipeline_config(str(config))
    assert pipeline_config.target is not None
    async with AdminClient(east.web_url) as admin, AdminClient(west.web_url) as target:
        await target.topics.create_partitioned(TOPIC, 2)
        await target.namespaces.set_deduplication("public/default", True)
        pipeline = Pipeline(pipeline_config, admin, pipeline_config.target, None, lambda line: None, CURSOR)
        async with Client(east.service_url) as here, Client(west.service_url) as there:
            await copy_log(here, there, TopicName.parse(FIRST), pipeline)


def test_lag_is_told_from_cursor_and_checkpoint_and_what_the_target_has(
    ask: Ask, config: Path, tmp_path: Path, east: InProcessBroker, west: InProcessBroker
) -> None:
    assert (ask("lag").exit_code, ask("lag").output) == (
        0,
        "to west: all 2 topic-partitions are copied\n",
    )
    before = now_ms()
    publish_to(east.service_url, FIRST, range(30), batch_delay_ms=10_000)
    publish_to(east.service_url, SECOND, range(4), batching_enabled=False)
    told = ask("lag", "-o", "json")
    assert told.exit_code == 1, told.output
    first, second = json.loads(told.stdout)
    assert (first["topic"], first["lagEntries"], first["lagMessages"]) == (FIRST, 1, 30)
    assert (second["lagEntries"], second["lagMessages"]) == (4, 4)
    assert 0 < second["lagSeconds"] <= (now_ms() - before) / 1000

    ends = {name: Position.parse(each["position"]) for name, each in zip("ab", (first, second), strict=True)}
    commit(tmp_path, first=Position(ends["a"].ledger, 0), second=Position(ends["b"].ledger, 1))
    told = ask("lag")
    assert f"{SECOND} -> west: 2 entries with about 2 messages, " in told.stdout
    assert "to west: 1 of 2 topic-partitions are behind, 2 entries with about 2 messages, " in told.stdout

    publish_to(east.service_url, FIRST, range(3), batching_enabled=False)
    asyncio.run(copy_as_the_job(config, east, west))
    publish_to(east.service_url, FIRST, range(1), batching_enabled=False)
    assert f"{FIRST} -> west: 1 entry with about 1 message, " in ask("lag").stdout
    LaneFiles(str(tmp_path / "west")).hold({SECOND: (Position(ends["b"].ledger, -1), "full")}, released=(), now_ms=1)
    assert f"{SECOND} -> west: 4 entries" in ask("lag").stdout


def test_why_says_what_holds_a_topic_and_what_both_clusters_have_of_it(
    ask: Ask, tmp_path: Path, east: InProcessBroker, west: InProcessBroker
) -> None:
    told = ask("why", OTHER)
    assert (told.exit_code, told.stdout) == (
        1,
        f"{OTHER}: not copied\n  reason: neither [select] topics nor namespaces names it\n",
    )
    assert "does not exist on east" in ask("why", "nowhere").stdout
    assert f"{TOPIC} -> west: create a partitioned topic, 2 partitions; replicate" in ask("why", str(TOPIC)).stdout
    publish_to(east.service_url, FIRST, range(2), batching_enabled=False)
    LaneFiles(str(tmp_path / "west")).hold({FIRST: (Position(1, -1), "over quota")}, released=(), now_ms=1_000)
    told = ask("why", FIRST)
    assert told.exit_code == 1
    assert f"  {FIRST}: copied up to 1:-1, 2 entries with about 2 messages, " in told.stdout
    assert "held behind 1:-1 since 1970-01-01 00:00:01 UTC, 1 attempts: over quota" in told.stdout
    assert SECOND not in told.stdout


def test_cursors_that_a_pipeline_left_are_listed_and_removed(ask: Ask, config: Path, east: InProcessBroker) -> None:
    told = ask("cursors")
    assert (told.exit_code, told.stdout.splitlines()[-1]) == (0, "2 cursors, 0 left")
    assert f"{FIRST}: {CURSOR} at 1:-1, 0 entries wait, kept" in told.stdout
    config.write_text(config.read_text().replace(str(TOPIC), OTHER))
    told = ask("cursors", "-o", "json")
    assert told.exit_code == 1
    assert [(each["topic"], each["state"]) for each in json.loads(told.stdout)] == [(FIRST, "left"), (SECOND, "left")]
    config.write_text(config.read_text().replace(OTHER, str(TOPIC)))
    assert ask("cursors", "--finished").exit_code == 1
    told = ask("cursors", "--finished", "--remove")
    assert (told.exit_code, told.stdout.splitlines()[-1]) == (0, "2 cursors, 2 removed")
    assert ask("cursors").stdout == "0 cursors, 0 left\n"


def test_cursor_of_a_pipeline_whose_file_is_gone_is_found_by_its_name(ask: Ask, east: InProcessBroker) -> None:
    with SyncClient(east.service_url) as client, client.subscribe(OTHER, "interpulse.old"):
        assert "interpulse.old at 3:-1, 0 entries wait, connected" in ask("cursors", "--name", "interpulse.old").stdout
    told = ask("cursors", "--name", "interpulse.old", "--remove")
    assert (told.exit_code, told.stdout.splitlines()[-1]) == (0, "1 cursors, 1 removed")


@pytest.mark.parametrize("words", [("lag",), ("why", "flights"), ("cursors",)])
def test_source_that_cannot_be_asked_ends_with_2(
    ask: Ask, config: Path, east: InProcessBroker, words: list[str]
) -> None:
    config.write_text(config.read_text().replace(east.web_url, "http://127.0.0.1:1"))
    told = ask(*words)
    assert (told.exit_code, told.stdout) == (2, "")
    assert told.stderr.startswith("Error: ")


def test_config_may_stand_before_the_verb(config: Path) -> None:
    assert CliRunner().invoke(command, ["--config", str(config), "lag"]).exit_code == 0
    told = CliRunner().invoke(command, ["lag"])
    assert (told.exit_code, "Missing option '--config'." in told.stderr) == (2, True)
    assert CliRunner().invoke(command, []).exit_code == 2
