"""``interpulse replicate --dry-run`` between two brokers of ours: what it prints, and its exit code."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.names import TopicName
from interpulse.spark.job.commands import command
from interpulse.testing import InProcessBroker

TOPIC, UNEQUAL, EQUAL, SMALL = (
    TopicName.parse(f"persistent://public/default/{name}") for name in ("flights", "trains", "buses", "bikes")
)
DryRun = Callable[..., Result]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, InProcessBroker]]:
    """East has three topics of two partitions, and west one of them with three, and one as it is in east. One of four
    partitions has two in west."""
    home = tmp_path_factory.mktemp("clusters")
    with (
        InProcessBroker(home / "east", {"clusterName": "east", "replicationJob": "external"}) as east,
        InProcessBroker(home / "west", {"clusterName": "west"}) as west,
    ):
        clusters = {"east": east, "west": west}
        asyncio.run(create(east, TOPIC, 2))
        asyncio.run(create(east, UNEQUAL, 2))
        asyncio.run(create(west, UNEQUAL, 3))
        asyncio.run(create(east, SMALL, 4))
        asyncio.run(create(west, SMALL, 2))
        for cluster in (east, west):
            asyncio.run(create(cluster, EQUAL, 2))
        yield clusters


async def create(cluster: InProcessBroker, topic: TopicName, partitions: int) -> None:
    async with AdminClient(cluster.web_url) as admin:
        await admin.topics.create_partitioned(topic, partitions)


@pytest.fixture(autouse=True)
def _log_restored() -> Iterator[None]:
    """The command shows the log on the standard error it has in this test alone."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    logging.captureWarnings(False)


@pytest.fixture
def dry_run(tmp_path: Path, clusters: dict[str, InProcessBroker], monkeypatch: pytest.MonkeyPatch) -> DryRun:
    monkeypatch.setattr("os._exit", ended)

    def run(
        source: str = "east", target: str = "west", target_url: str = "", topic: TopicName = TOPIC, more: str = ""
    ) -> Result:
        path = tmp_path / "job.toml"
        path.write_text(
            f"""
            [pipeline]
            name = "p"
            state = "{tmp_path}"
            [source]
            cluster = "{source}"
            service_url = "{clusters["east"].service_url}"
            admin_url = "{clusters["east"].web_url}"
            [target]
            cluster = "{target}"
            service_url = "{clusters["west"].service_url}"
            admin_url = "{target_url or clusters["west"].web_url}"
            [select]
            topics = ["{topic}"]
            {more}
            """
        )
        return CliRunner().invoke(command, ["--config", str(path), "--dry-run"])

    return run


def ended(code: int) -> None:
    raise SystemExit(code)


def test_topics_that_are_equal_there_end_with_0(dry_run: DryRun) -> None:
    told = dry_run(topic=EQUAL)
    assert told.exit_code == 0, told.output
    assert f"{EQUAL}: replicate, 2 partitions; nothing waits" in told.stdout


def test_topics_that_would_be_created_end_with_1(dry_run: DryRun) -> None:
    told = dry_run()
    assert told.exit_code == 1, told.output
    assert f"{TOPIC}: create a partitioned topic, 2 partitions; replicate; nothing waits" in told.stdout


def test_topics_are_shown_with_the_names_they_get_there(dry_run: DryRun) -> None:
    told = dry_run(
        more='[map]\nrules = [{ from = "public/default/trains", to = "public/default/buses" }]', topic=UNEQUAL
    )
    assert told.exit_code == 0, told.output
    assert f"{UNEQUAL} -> {EQUAL}: replicate, 2 partitions" in told.stdout


@pytest.mark.parametrize(
    ("given", "own"),
    [
        ({"source": "best"}, "[source] cluster: the cluster at {east} calls itself east, not best"),
        ({"target": "best"}, "[target] cluster: the cluster at {west} calls itself west, not best"),
    ],
)
def test_cluster_with_another_name_of_its_own_ends_with_2(
    dry_run: DryRun, clusters: dict[str, InProcessBroker], given: dict[str, str], own: str
) -> None:
    told = dry_run(**given)
    assert told.exit_code == 2
    assert own.format(**{name: cluster.web_url for name, cluster in clusters.items()}) in told.stderr


def test_target_that_cannot_be_reached_ends_with_2(dry_run: DryRun) -> None:
    told = dry_run(target_url="http://127.0.0.1:1")
    assert told.exit_code == 2
    assert "west cannot be reached" in told.stdout


def test_topics_that_would_be_held_end_with_1(dry_run: DryRun) -> None:
    told = dry_run(topic=UNEQUAL)
    assert told.exit_code == 1
    assert f"{UNEQUAL}: held: " in told.stdout


@pytest.mark.parametrize(
    ("more", "topic", "code", "told"),
    [
        ("[provision]\non_mismatch = 'fail'", UNEQUAL, 1, "the job would end: "),
        ("[provision]\non_mismatch = 'expand'", UNEQUAL, 1, "held: "),
        ("[provision]\non_mismatch = 'expand'", SMALL, 1, "expand to 4 partitions; replicate"),
        (f"[map]\nrules = [{{ from = '{SMALL}', to = 'public/new/x' }}]", SMALL, 1, "held: namespace public/new does"),
        (
            f"[provision]\nnamespaces = true\n[map]\nrules = [{{ from = '{SMALL}', to = 'public/new/x' }}]",
            SMALL,
            1,
            "create namespace public/new, create a topic, 4 partitions; replicate",
        ),
        (f"[pipeline.start]\n'{EQUAL}' = '1:2'", EQUAL, 0, f"start = as given for {EQUAL}"),
    ],
)
def test_keys_of_the_file_change_what_would_be_done(
    dry_run: DryRun, more: str, topic: TopicName, code: int, told: str
) -> None:
    found = dry_run(topic=topic, more=more)
    assert found.exit_code == code, found.output
    assert told in found.stdout


def test_start_that_names_another_topic_ends_with_2(dry_run: DryRun) -> None:
    found = dry_run(topic=EQUAL, more=f"[pipeline.start]\n'{TOPIC}' = '1:2'")
    assert found.exit_code == 2
    assert f"[pipeline] start names what is not selected: {TOPIC}" in found.stderr
