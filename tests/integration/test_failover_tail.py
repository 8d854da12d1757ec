"""The tail of a site that was lost and has returned, between two clusters that copy."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interpulse.cli.main import main
from interpulse.failover.history.reading import read_log
from interpulse.failover.site import SiteAccess
from interpulse.failover.tail.incident import Incident, LastCopy
from interpulse.failover.tail.listing import CONFLICTS, TAIL, list_tail, listed_before
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from tests.support.recorded_pair import TOPIC, Play, playing, until

NAME = TopicName.parse(TOPIC)


@pytest.fixture
async def play(tmp_path: Path) -> AsyncIterator[Play]:
    async with playing(tmp_path) as started:
        yield started


def made(directory: Path) -> Path:
    directory.mkdir()
    return directory


async def listed(play: Play, directory: Path, last: LastCopy) -> tuple[dict[str, Any], list[Any], list[Any]]:
    """List the tail of east. Return the sums, the messages and the conflicts."""
    config = play.file(directory)
    async with AsyncExitStack() as closing:
        east, west = (SiteAccess.of(config, site) for site in ("east", "west"))
        for access in (east, west):
            closing.push_async_callback(access.close)
        summary = await list_tail(east, west, Incident(5, "east", "west", (last,)), directory)
    assert listed_before(directory) == summary
    return summary, *written(directory)


def written(directory: Path) -> tuple[list[Any], list[Any]]:
    """Return the messages and the conflicts that are listed, and nothing else is in the directory."""
    assert sorted(path.name for path in directory.iterdir()) == [CONFLICTS, "tail-summary.json", TAIL]
    tail, conflicts = (
        [json.loads(line) for line in (directory / name).read_text().splitlines()] for name in (TAIL, CONFLICTS)
    )
    return tail, conflicts


async def publish(play: Play, site: str, values: list[tuple[str | None, str]], **options: Any) -> list[Position]:
    """Publish messages with keys and contents at a site."""
    client = play.clients[site].client
    async with await client.create_producer(TOPIC, **{"batching_enabled": False, **options}) as producer:
        receipts = await asyncio.gather(*(producer.send(value, key=key) for key, value in values))
    return sorted({receipt.position for receipt in receipts})


async def last_copy(play: Play) -> LastCopy:
    """Wait until west has all that east has, and return the last of it."""

    async def is_copied() -> bool:
        east, west = [(await read_log(play.clients[site].client, site, TOPIC)).messages for site in ("east", "west")]
        return len(east) == len(west)

    await until(is_copied)
    messages = (await read_log(play.clients["east"].client, "east", TOPIC)).messages
    return LastCopy(NAME, messages[-1].position if messages else EARLIEST)


async def taken_over(play: Play, tail: list[tuple[str | None, str]], **options: Any) -> tuple[LastCopy, list[Position]]:
    """Copy twenty messages, publish a tail that is not copied, lose east and promote west."""
    await publish(play, "east", [(f"k{number}", "x") for number in range(20)])
    last = await last_copy(play)
    await asyncio.to_thread(play.pair.stop_copying, "east")
    positions = await publish(play, "east", tail, **options)
    await asyncio.to_thread(play.pair.lose, "east")
    await play.set_role("west", "active")
    return last, positions


async def returned(play: Play) -> None:
    await asyncio.to_thread(play.pair.return_, "east")
    await play.set_role("east", "standby")


async def test_tail_when_the_site_returns_then_has_each_message_without_a_copy(play: Play, tmp_path: Path) -> None:
    """F28 and F29 of the specification, in small."""
    last, positions = await taken_over(play, [(f"k{number}", f"late {number}") for number in range(30)])
    await publish(play, "west", [*((f"k{number}", "new") for number in range(10)), ("k10", "late 10"), ("other", "x")])
    await returned(play)
    summary, tail, conflicts = await listed(play, made(tmp_path / "incident"), last)
    assert [(row["position"], row["key"]) for row in tail] == [(str(each), f"k{n}") for n, each in enumerate(positions)]
    assert tail[0]["payload_sha"] == hashlib.sha256(b"late 0").hexdigest()
    assert (tail[0]["bytes"], tail[0]["batch_index"], tail[0]["acknowledged_by"]) == (6, -1, [])
    assert {row["key"]: row["same_payload"] for row in conflicts} == {
        **{f"k{number}": False for number in range(10)},
        "k10": True,
    }
    assert conflicts[3]["tail_position"] == tail[3]["position"]
    assert (summary["messages"], summary["conflicts"], summary["topics"][0]["state"]) == (30, 11, "same")
    assert summary["lostPositions"] == []


async def test_tail_when_in_batches_then_names_each_message_and_its_subscriptions(play: Play, tmp_path: Path) -> None:
    await publish(play, "east", [("k", "x")])
    last = await last_copy(play)
    await asyncio.to_thread(play.pair.stop_copying, "east")
    batch: list[tuple[str | None, str]] = [(f"b{number}", "x" * 100) for number in range(8)]
    options = {"batching_enabled": True, "batch_delay_ms": 200, "compression": "zlib"}
    assert len(await publish(play, "east", batch, **options)) == 1
    await acknowledge(play, 0, 1, 3)
    await asyncio.to_thread(play.pair.lose, "east")
    await play.set_role("west", "active")
    await returned(play)
    _, tail, _ = await listed(play, made(tmp_path / "incident"), last)
    assert [(row["batch_index"], row["key"]) for row in tail] == [(number, f"b{number}") for number in range(8)]
    assert [row["acknowledged_by"] for row in tail] == [["billing"], [], ["billing"], *[[]] * 5]


async def acknowledge(play: Play, *wanted: int) -> None:
    """Receive nine messages at east and acknowledge some of them."""
    options = {"subscription_type": "shared", "initial_position": "earliest", "batch_index_ack_enabled": True}
    async with await play.clients["east"].client.subscribe(TOPIC, "billing", **options) as consumer:
        for number in range(9):
            message = await consumer.receive()
            if number in wanted:
                consumer.acknowledge(message)


async def test_tail_when_it_was_copied_meanwhile_then_is_empty(play: Play, tmp_path: Path) -> None:
    last, positions = await taken_over(play, [("k", "late")])
    await returned(play)
    await asyncio.to_thread(play.pair.start_copying, "east")
    await last_copy(play)
    summary, tail, conflicts = await listed(play, made(tmp_path / "incident"), last)
    assert (tail, conflicts, summary["messages"]) == ([], [], 0)
    holes = replace(last, copied=positions[-1], first=Position(last.copied.ledger, 0))
    assert (await listed(play, made(tmp_path / "holes"), holes))[1] == []


async def test_tail_when_nothing_was_copied_then_is_the_whole_log(play: Play, tmp_path: Path) -> None:
    await asyncio.to_thread(play.pair.stop_copying, "east")
    positions = await publish(play, "east", [(None, str(number)) for number in range(5)])
    summary, tail, _ = await listed(play, made(tmp_path / "incident"), LastCopy(NAME))
    assert [row["position"] for row in tail] == list(map(str, positions))
    assert summary["topics"][0]["state"] == "same"


@pytest.mark.slow
async def test_tail_when_the_log_was_truncated_then_names_the_lost_positions(play: Play, tmp_path: Path) -> None:
    last, _ = await taken_over(play, [("k", "late")])
    await returned(play)
    await play.clients["east"].admin.topics.truncate(TOPIC)
    summary, tail, _ = await listed(play, made(tmp_path / "incident"), last)
    assert tail == []
    (lost,) = summary["lostPositions"]
    assert (lost["after"], lost["state"]) == (str(last.copied), "trimmed")


async def test_tail_when_the_site_was_rebuilt_then_all_behind_the_last_copy_is_lost(play: Play, tmp_path: Path) -> None:
    last, _ = await taken_over(play, [("k", "late")])
    await returned(play)
    # The same as with another log there: the entry at that position is not the original of its copy.
    other = Position(last.copied.ledger + 1000, 0)
    rebuilt = replace(last, copied=other, end=Position(other.ledger, 7))
    summary, tail, _ = await listed(play, made(tmp_path / "incident"), rebuilt)
    assert tail == []
    (lost,) = summary["lostPositions"]
    assert (lost["after"], lost["upto"], lost["state"]) == (str(other), f"{other.ledger}:7", "rebuilt")


async def test_command_when_a_tail_is_listed_then_prints_it_and_ends_with_1(play: Play, tmp_path: Path) -> None:
    last, positions = await taken_over(play, [("k", "late"), ("l", "later")])
    await returned(play)
    directory = made_incident(tmp_path, last)
    code, shown = await run_tail(play, tmp_path, "-n", "1")
    assert code == 1
    assert "orders: the takeover of epoch 5 left 2 messages in 1 of 1 topic-partitions at east" in shown
    assert f"{positions[0]} " in shown
    assert f"{positions[1]} " not in shown
    assert f"All 2 messages: {directory / TAIL}" in shown
    await asyncio.to_thread(play.pair.start_copying, "east")
    await last_copy(play)
    code, shown = await run_tail(play, tmp_path, "-o", "json")
    assert (code, json.loads(shown)["messages"]) == (1, 2)  # the list that is there
    code, shown = await run_tail(play, tmp_path, "--again", "-o", "json")
    assert (code, json.loads(shown)["messages"]) == (0, 0)
    code, shown = await run_tail(play, tmp_path, "--epoch", "6")
    assert code == 3
    assert "no incident of epoch 6: the epochs of takeovers are 5" in shown


def made_incident(directory: Path, last: LastCopy) -> Path:
    """Write the record of a takeover of epoch 5."""
    incident = directory / "state" / "incidents" / "5"
    incident.mkdir(parents=True)
    topics = [{"topic": TOPIC, "copied": str(last.copied)}]
    (incident / "before.json").write_text(json.dumps({"epoch": 5, "lost": "east", "to": "west", "topics": topics}))
    return incident


async def run_tail(play: Play, directory: Path, *options: str) -> tuple[int, str]:
    """Run the command as a user does. Return its exit code and all that it prints."""
    path = write_pair(play, directory)
    arguments = ["failover", "tail", "--config", str(path), *options]
    result = await asyncio.to_thread(CliRunner().invoke, main, arguments)
    return result.exit_code, result.output


def write_pair(play: Play, directory: Path) -> Path:
    """Write the file of the pair."""
    lines = ["[pair]", 'name = "orders"', 'sites = ["east", "west"]', 'namespaces = ["public/default"]']
    lines.append(f'state = "{directory / "state"}"')
    for site in ("east", "west"):
        address = play.pair.address(site)
        lines += [f"[{site}]", f'cluster = "{site}"', f'service_url = "{address.service_url}"']
        lines.append(f'admin_url = "{address.admin_url}"')
    path = directory / "pair.toml"
    path.write_text("\n".join(lines))
    return path
