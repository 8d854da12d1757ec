"""Reconciliation of a site that was lost and answers again, between two clusters of ours that copy without Spark."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interpulse.cli.main import main
from interpulse.client import Client
from interpulse.failover.commands import initialise, switch, undo
from interpulse.failover.journal import Journal
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.pair import opened_pair
from interpulse.failover.pair_config import PairConfig
from interpulse.failover.reconcile import command
from interpulse.failover.reconcile.command import go_back, reconcile
from interpulse.failover.reconcile.steps import reconcile_steps
from interpulse.failover.running import Result
from interpulse.testing import ClusterPair
from tests.integration.test_switch import Killed, KilledStep, Shown
from tests.integration.test_takeover import (
    NAMESPACE,
    TOPIC,
    config_of,
    contents,
    publish,
    roles,
    run_takeover,
    until_contents,
)
from tests.support.waiting import SECONDS_MAX


@pytest.fixture
def sites(tmp_path: Path) -> Any:
    with ClusterPair(tmp_path / "sites", replicates=True) as pair:
        for broker in pair.brokers.values():
            broker.admin.namespaces.set_replication_clusters(NAMESPACE, ["east", "west"])
        pair.east.admin.topics.create(str(TOPIC))
        yield pair


@pytest.fixture
async def config(sites: ClusterPair, tmp_path: Path) -> PairConfig:
    made = config_of(sites, tmp_path / "state")
    async with opened_pair(made) as pair:
        await initialise(pair)
    return made


class Asked:
    """Confirmation that keeps what it was shown."""

    def __init__(self, *, answer: bool = True) -> None:
        self.shown: list[Mapping[str, Any]] = []
        self._answer = answer

    async def __call__(self, summary: Mapping[str, Any]) -> bool:
        self.shown.append(summary)
        return self._answer


async def run_reconcile(config: PairConfig, asked: Asked | None = None, shown: Shown | None = None) -> Result:
    async with asyncio.timeout(SECONDS_MAX), opened_pair(config) as pair:
        return await reconcile(pair, shown or Shown(), asked or Asked())


async def lost_with_a_tail(sites: ClusterPair, config: PairConfig, *, acknowledged: int = 0) -> None:
    """Copy 0-19, leave 20-49 at east alone, of which its consumer has acknowledged some, and take over.

    West takes 100-104, and east is back.
    """
    await publish(sites, "east", 0, 20)
    await until_contents(sites, "west", set(range(20)))
    if acknowledged:
        await taken(sites, "east", 20)
        await until_waiting(sites, "west", 0)
    await asyncio.to_thread(sites.stop_copying, "east")
    await publish(sites, "east", 20, 30)
    if acknowledged:
        assert await taken(sites, "east", acknowledged) == list(range(20, 20 + acknowledged))
    await asyncio.to_thread(sites.lose, "east")
    result, *_ = await run_takeover(config)
    assert result.outcome is Outcome.DONE, result.warnings
    await publish(sites, "west", 100, 5)
    await asyncio.to_thread(sites.return_, "east")
    await asyncio.to_thread(sites.start_copying, "east")


async def taken(sites: ClusterPair, site: str, count: int) -> list[int]:
    """Receive and acknowledge so many messages of a replicated subscription."""
    async with Client(sites.address(site).service_url) as client:
        consumer = await subscribed(client)
        messages = [await consumer.receive() for _ in range(count)]
        for message in messages:
            consumer.acknowledge(message)
        await consumer.close()
    return [int(message.content or b"") for message in messages]


async def subscribed(client: Client) -> Any:
    return await client.subscribe(
        str(TOPIC),
        "billing",
        subscription_type="shared",
        initial_position="earliest",
        replicate_subscription_state=True,
    )


async def until_waiting(sites: ClusterPair, site: str, count: int) -> None:
    """Wait until the subscription of a site has a backlog of so many messages."""
    admin = sites.brokers[site].admin
    async with asyncio.timeout(SECONDS_MAX):
        while True:
            shown = (await asyncio.to_thread(admin.topics.stats, str(TOPIC)))["subscriptions"]
            if shown.get("billing", {}).get("msgBacklog") == count:
                return
            await asyncio.sleep(0.02)


def lines_of(config: PairConfig, name: str) -> list[Any]:
    path = config.state / "incidents" / "2" / name
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_reconcile_when_the_site_is_back_then_lists_its_messages_and_both_sites_have_all(
    sites: ClusterPair, config: PairConfig
) -> None:
    """F28 of the specification, in small."""
    await lost_with_a_tail(sites, config)
    assert await roles(sites, "west") == ["active;epoch=2;lanesFrom=east:closed"]
    await until_contents(sites, "east", {*range(50), *range(100, 105)})
    assert set(await contents(sites, "west")) == {*range(20), *range(100, 105)}  # the way is closed
    await publish(sites, "east", 50, 2)  # its clients do not know better: of the tail, too
    asked, shown = Asked(), Shown()
    result = await run_reconcile(config, asked, shown)
    assert result.outcome is Outcome.DONE, result.warnings
    assert await roles(sites, "east", "west") == ["standby;epoch=2", "active;epoch=2"]
    names = ["lease", "hold", "list", "confirm", "open way", "copy", "acknowledgements", "serve consumers"]
    assert [line.split(":")[0].split(" ", 1)[1] for line in shown.lines[1:]] == [*names, "compare", "report"]
    assert any("32 entries of east and 5 of west are the same at both sites" in line for line in shown.lines)
    assert any("open way: consumers go on" in line for line in shown.lines)  # no one had acknowledged any of them
    (summary,) = asked.shown
    assert (summary["messages"], summary["conflicts"], summary["lost"]) == (32, 0, [])
    assert [row["sequence_id"] for row in lines_of(config, "tail.jsonl")] == [*range(30), *range(2)]
    assert sorted(await contents(sites, "east")) == sorted(await contents(sites, "west"))
    assert (await contents(sites, "west"))[-32:] == list(range(20, 52))
    (after,) = lines_of(config, "after.json")
    assert (after["outcome"], after["messages"], after["lostPositions"]) == ("DONE", 32, [])
    assert after["compared"]["late"] == 32
    with pytest.raises(OperationFailed, match="has no open incident: only a takeover leaves one"):
        await run_reconcile(config)


async def test_reconcile_when_a_part_was_acknowledged_then_the_other_site_delivers_only_the_rest(
    sites: ClusterPair, config: PairConfig
) -> None:
    """F30 of the specification: a consumer is connected at west all the time."""
    await lost_with_a_tail(sites, config, acknowledged=15)
    got: list[int] = []
    async with Client(sites.address("west").service_url) as client:
        consumer = await subscribed(client)

        async def consume() -> None:
            while True:
                message = await consumer.receive()
                got.append(int(message.content or b""))
                consumer.acknowledge(message)

        consuming = asyncio.create_task(consume())
        shown = Shown()
        result = await run_reconcile(config, shown=shown)
        assert result.outcome is Outcome.DONE, result.warnings
        assert any("consumers of 1 topic-partitions wait for acknowledgements" in line for line in shown.lines)
        assert any("acknowledgements: 15 messages of the tail" in line for line in shown.lines)
        await publish(sites, "west", 105, 1)
        async with asyncio.timeout(SECONDS_MAX):
            while 105 not in got:  # noqa: ASYNC110  # there is no event to wait for
                await asyncio.sleep(0.02)
        consuming.cancel()
        await asyncio.gather(consuming, return_exceptions=True)
    assert sorted(got) == [*range(35, 50), *range(100, 106)]
    await until_waiting(sites, "east", 0)


async def test_back_when_an_incident_is_open_then_reconciles_and_the_first_site_serves(
    sites: ClusterPair, config: PairConfig
) -> None:
    """F21 of the specification, after a takeover."""
    await lost_with_a_tail(sites, config)
    async with opened_pair(config) as pair:
        with pytest.raises(OperationFailed, match="The incident of epoch 2 is open"):
            await switch(pair, "east", Shown())
        async with asyncio.timeout(SECONDS_MAX):
            merged, switched = await go_back(pair, Shown(), Asked())
    assert merged is not None
    assert (merged.outcome, switched.outcome) == (Outcome.DONE, Outcome.DONE), switched.warnings
    assert [each.partition(";url=")[0] for each in await roles(sites, "east", "west")] == [
        "active;epoch=4",
        "moved;epoch=4",
    ]
    assert sorted(await contents(sites, "east")) == sorted(await contents(sites, "west"))
    async with asyncio.timeout(SECONDS_MAX), opened_pair(config) as pair:
        merged, switched = await go_back(pair, Shown(), Asked())
    assert (merged, switched.outcome) == (None, Outcome.DONE)
    assert (await roles(sites, "west")) == ["active;epoch=5"]


async def killed_reconcile(config: PairConfig, step: str, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(*arguments: Any) -> list[Any]:
        found = reconcile_steps(*arguments)
        return [KilledStep(each, moment) if each.name == step else each for each in found]

    with monkeypatch.context() as patched:
        patched.setattr(command, "reconcile_steps", steps)
        with pytest.raises(Killed):
            await run_reconcile(config)


STEPS = (
    *("lease", "hold", "list", "confirm", "open way", "copy", "acknowledgements", "serve consumers"),
    *("compare", "report"),
)
WITH_ACTS = ("hold", "list", "confirm", "open way", "serve consumers", "report")
MOMENTS = [*((step, "holds") for step in STEPS), *((step, "act") for step in WITH_ACTS)]


async def test_reconcile_when_killed_at_each_step_then_the_same_command_ends_it(
    sites: ClusterPair, config: PairConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run is killed at each step in turn, before and after its act."""
    await lost_with_a_tail(sites, config, acknowledged=15)
    for step, moment in sorted(MOMENTS, key=lambda each: (STEPS.index(each[0]), each[1])):
        await killed_reconcile(config, step, moment, monkeypatch)
    result = await run_reconcile(config)
    assert result.outcome is Outcome.DONE, result.warnings
    assert await roles(sites, "east", "west") == ["standby;epoch=2", "active;epoch=2"]
    assert len(lines_of(config, "tail.jsonl")) == 30
    assert sorted(await contents(sites, "east")) == sorted(await contents(sites, "west"))
    await until_waiting(sites, "west", 20)
    paths = [path for path in (config.state / "operations").glob("*.jsonl") if path.name.count(".") == 1]
    assert [Journal(path).outcome for path in sorted(paths)] == ["DONE", "DONE"]


async def test_reconcile_when_it_is_not_confirmed_then_nothing_is_merged(
    sites: ClusterPair, config: PairConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lost_with_a_tail(sites, config)
    with pytest.raises(OperationFailed, match="nothing was merged, and east stands by") as caught:
        await run_reconcile(config, Asked(answer=False))
    assert caught.value.outcome is Outcome.REFUSED
    assert await roles(sites, "east", "west") == ["standby;epoch=2", "active;epoch=2;lanesFrom=east:closed"]
    await killed_reconcile(config, "list", "holds", monkeypatch)
    async with opened_pair(config) as pair:
        with pytest.raises(OperationFailed, match="takes none away, so it is not taken back: give it again"):
            await undo(pair, Shown())
    assert (await run_reconcile(config)).outcome is Outcome.DONE


@pytest.mark.slow
async def test_reconcile_when_the_log_was_truncated_then_names_what_is_lost_and_closes_the_incident(
    sites: ClusterPair, config: PairConfig
) -> None:
    await lost_with_a_tail(sites, config)
    await until_contents(sites, "east", {*range(50), *range(100, 105)})
    await asyncio.to_thread(sites.east.admin.topics.truncate, str(TOPIC))
    asked = Asked()
    result = await run_reconcile(config, asked)
    assert result.outcome is Outcome.NOTICED
    (lost,) = asked.shown[0]["lost"]
    assert (lost["topic"], lost["state"]) == (str(TOPIC), "trimmed")
    assert any("cannot be compared, retention has removed a part of it" in each for each in result.warnings)
    (after,) = lines_of(config, "after.json")
    assert (after["messages"], after["lostPositions"]) == (0, [lost])
    assert await contents(sites, "west") == [*range(20), *range(100, 105)]


async def run_command(config: PairConfig, directory: Path, *words: str) -> tuple[int, str]:
    """Run a command of failover as a user does. Return its exit code and all that it prints."""
    lines = ["[pair]", 'name = "orders"', 'sites = ["east", "west"]', f'namespaces = ["{NAMESPACE}"]']
    lines += [f'state = "{config.state}"', "[limits]", "settle_s = 1"]
    for name, address in config.addresses.items():
        lines += [f"[{name}]", f'cluster = "{name}"', f'service_url = "{address.service_url}"']
        lines.append(f'admin_url = "{address.admin_url}"')
    path = directory / "pair.toml"
    path.write_text("\n".join(lines))
    command, *options = words
    result = await asyncio.to_thread(CliRunner().invoke, main, ["failover", command, "--config", str(path), *options])
    return result.exit_code, result.output


async def test_command_when_keys_are_in_conflict_then_merges_only_if_that_is_accepted(
    sites: ClusterPair, config: PairConfig, tmp_path: Path
) -> None:
    """F29 of the specification in part: the keys are named, and none is replaced without a decision."""
    await publish(sites, "east", 0, 5)
    await until_contents(sites, "west", set(range(5)))
    await asyncio.to_thread(sites.stop_copying, "east")
    await publish(sites, "east", 5, 20, keyed=True)
    await asyncio.to_thread(sites.lose, "east")
    await run_takeover(config)
    await publish(sites, "west", 5, 3, keyed=True)
    await asyncio.to_thread(sites.return_, "east")
    await asyncio.to_thread(sites.start_copying, "east")
    code, shown = await run_command(config, tmp_path, "reconcile")
    assert (code, "Standard input is no terminal" in shown) == (2, True)
    code, shown = await run_command(config, tmp_path, "reconcile", "--yes")
    assert code == 3, shown
    assert "20 messages are at east only, 3 of their keys were taken at west since" in shown
    assert "Refused: 3 keys were taken at both sites" in shown
    assert [row["key"] for row in lines_of(config, "conflicts.jsonl")] == ["5", "6", "7"]
    assert await contents(sites, "west") == [*range(8)]
    code, shown = await run_command(config, tmp_path, "back", "--yes", "--accept-conflicts", "-o", "json")
    assert code == 1, shown
    merged, switched = (json.loads(line) for line in shown.splitlines() if line.startswith("{"))
    assert (merged["outcome"], merged["incident"]["conflicts"]) == ("NOTICED", 3)
    assert switched["operation"]["to"] == "east"
    assert sorted(await contents(sites, "east")) == sorted([*range(25), 5, 6, 7])
    code, shown = await run_command(config, tmp_path, "tail", "--again")
    assert (code, "so it is kept. Leave out --again" in shown) == (3, True)


async def test_reconcile_when_the_tail_does_not_arrive_then_the_way_is_closed_again(
    sites: ClusterPair, tmp_path: Path
) -> None:
    config = config_of(sites, tmp_path / "state", limits={"probes": 1, "settle_s": 1, "hold_s": 1})
    async with opened_pair(config) as pair:
        await initialise(pair)
    await lost_with_a_tail(sites, config, acknowledged=15)
    await asyncio.to_thread(sites.stop_copying, "east")
    with pytest.raises(OperationFailed, match=r"orders has not arrived at west from .*; raise hold_s") as caught:
        await run_reconcile(config)
    assert caught.value.outcome is Outcome.TAKEN_BACK
    assert await roles(sites, "east", "west") == ["standby;epoch=2", "active;epoch=2;lanesFrom=east:closed"]
    await asyncio.to_thread(sites.start_copying, "east")
    result = await run_reconcile(config)
    assert (result.outcome, len(lines_of(config, "tail.jsonl"))) == (Outcome.DONE, 30)
