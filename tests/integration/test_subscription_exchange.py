"""Acknowledgements on both of two clusters of ours, with jobs in both directions, without Spark."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from interpulse.model.ids import EARLIEST, MessageId
from interpulse.replication.position_runs import Run
from interpulse.spark.position_files import PositionFiles
from interpulse.testing import InProcessBroker
from tests.support.two_sites import NAME, TOPIC, Sites


@pytest.fixture
async def sites(tmp_path: Path) -> AsyncIterator[Sites]:
    keys = {"replicationJob": "external"}
    with (
        InProcessBroker(tmp_path / "east", {"clusterName": "east", **keys}) as east,
        InProcessBroker(tmp_path / "west", {"clusterName": "west", **keys}) as west,
    ):
        sites = Sites(tmp_path / "jobs", east, west)
        await sites.admins["east"].topics.create(TOPIC)
        await sites.admins["east"].topics.create_subscription(TOPIC, NAME, MessageId(*EARLIEST), replicated=True)
        yield sites
        await sites.close()


async def test_acknowledgements_go_both_ways_one_by_one_and_a_reset_takes_them_back(sites: Sites) -> None:
    """F01, F03 and F07 of the specification, one after the other."""
    sites.start("east")
    await sites.ready()
    await sites.publish("east", range(100))
    done = {*range(10), *range(20, 30), 55}
    await sites.take("east", 100, done.__contains__)
    await sites.copy("east")
    await sites.until_backlog("west", 79)
    assert await sites.admins["west"].topics.subscription_replicated(TOPIC, NAME) == {str(TOPIC): True}
    assert await sites.waiting("west") == set(range(100)) - done

    messages = await sites.receive("west", 79)
    await sites.acknowledge("west", (messages[number] for number in range(30, 40)))
    await sites.until_backlog("east", 69)
    done |= {*range(30, 40)}
    assert await sites.waiting("east") == set(range(100)) - done

    await sites.until_carried(west=21, east=10)

    east = await sites.ids("east")
    await sites.admins["east"].topics.reset_cursor_to_message(TOPIC, NAME, east[5])
    await sites.until_backlog("west", 95)
    assert await sites.waiting("west") == await sites.waiting("east") == set(range(5, 100))
    quiet = len(sites.events)
    for _ in range(20):
        await sites.turn()
    assert sites.events[quiet:] == []


async def test_parts_of_batches_are_carried(sites: Sites) -> None:
    """F02 of the specification."""
    sites.start("east")
    await sites.ready()
    await sites.publish("east", range(50), batch=10)
    await sites.copy("east")
    await sites.take("east", 50, {30, 33, 39}.__contains__)

    async def is_carried() -> bool:
        return any(event["event"] == "subscription" for event in sites.events)

    await sites.until(is_carried)
    assert await sites.waiting("west", 47) == set(range(50)) - {30, 33, 39}


async def test_messages_of_both_sites_are_carried_by_the_job_of_their_direction(sites: Sites) -> None:
    """F04 and F05 of the specification."""
    for source in ("east", "west"):
        sites.start(source)
    await sites.ready()
    for number in range(0, 40, 2):
        await sites.publish("east", [number])
        await sites.publish("west", [number + 1])
        await sites.copy("east", "west")
    await sites.until_backlog("west", 40)
    await sites.take("east", 40, lambda number: number % 2 == 0)
    await sites.until_backlog("west", 20)
    assert await sites.waiting("west") == set(range(1, 40, 2))

    await sites.publish("east", range(40, 60))
    await sites.copy("east")
    await sites.until_backlog("west", 40)
    on_west = await sites.receive("west", 40)
    await sites.take("east", 40, lambda number: number % 4 == 1)
    await sites.acknowledge("west", (message for number, message in on_west.items() if number % 4 == 3))
    await sites.until_backlog("east", 10)
    await sites.until_backlog("west", 10)
    assert await sites.waiting("east") == await sites.waiting("west") == set(range(40, 60, 2))


async def test_what_is_not_copied_waits_for_its_copy(sites: Sites) -> None:
    """F06 of the specification."""
    sites.start("east")
    await sites.ready()
    await sites.publish("east", range(5))
    await sites.copy("east")
    await sites.until_backlog("west", 5)
    await sites.publish("east", range(5, 15))
    await sites.take("east", 15, lambda number: number >= 5)
    await sites.until_standing("east", "BEHIND", 10)
    assert await sites.waiting("west") == set(range(5))
    await sites.copy("east")
    await sites.until_standing("east", "SYNCED", 0)
    assert await sites.waiting("west") == set(range(5))


async def test_a_job_without_its_state_reads_the_copies_from_the_target(sites: Sites) -> None:
    """F08 of the specification, with fewer ranges."""
    sites.start("east")
    await sites.ready()
    await sites.publish("east", range(60))
    await sites.copy("east")
    await sites.until_backlog("west", 60)
    await sites.stop("east")
    shutil.rmtree(sites.directory / "east")
    await sites.take("east", 60, lambda number: number % 2 == 1)
    await sites.take("west", 60, lambda number: number % 3 == 0)
    sites.start("east")
    await sites.until_backlog("west", 20)
    await sites.until_backlog("east", 20)
    assert await sites.waiting("west") == await sites.waiting("east") == {n for n in range(60) if n % 2 == 0 and n % 3}


async def test_a_subscription_that_is_not_marked_is_left_alone(sites: Sites) -> None:
    sites.start("east")
    await sites.ready()
    await sites.admins["east"].topics.create_subscription(TOPIC, "local", MessageId(*EARLIEST))
    await sites.admins["east"].topics.set_subscription_replicated(TOPIC, NAME, False)
    await sites.publish("east", range(3))
    await sites.copy("east")
    await sites.admins["east"].topics.set_subscription_replicated(TOPIC, NAME, True)
    await sites.until_backlog("west", 3)
    shown = (await sites.admins["west"].topics.stats(TOPIC))["subscriptions"]
    assert {name for name, each in shown.items() if each["isDurable"]} == {NAME}  # a reader may be there for a moment


async def test_positions_that_cannot_be_read_for_a_while_are_read_later(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, failures = PositionFiles.read_new, [OSError(28, "No space left on device")] * 3

    def failing(files: PositionFiles) -> dict[str, list[Run]]:
        if failures:
            raise failures.pop()
        return read(files)

    monkeypatch.setattr(PositionFiles, "read_new", failing)
    sites.start("east")
    await sites.ready()
    await sites.publish("east", range(4))
    await sites.copy("east")
    await sites.take("east", 4, range(3).__contains__)
    await sites.until_backlog("west", 1)
    assert not failures


async def test_a_subscription_that_is_gone_on_the_target_is_created_there_again(sites: Sites) -> None:
    sites.start("east")
    await sites.ready()
    await sites.publish("east", range(4))
    await sites.copy("east")
    await sites.take("east", 4, range(3).__contains__)
    await sites.until_backlog("west", 1)
    await sites.admins["west"].topics.delete_subscription(TOPIC, NAME)
    await sites.until_backlog("west", 1)
    assert await sites.waiting("west") == {3}
