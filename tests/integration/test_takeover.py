"""Takeovers of a site that is lost, between two clusters of ours that copy without Spark."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interpulse.client import Client
from interpulse.failover.commands import initialise, switch, undo
from interpulse.failover.journal import Journal
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.pair import opened_pair
from interpulse.failover.pair_config import PairConfig, parse_pair_config
from interpulse.failover.reporting.stored import read_reports, reports_topic
from interpulse.failover.reporting.watching import Watch
from interpulse.failover.running import Result
from interpulse.failover.site import SiteAccess
from interpulse.failover.tail.incident import Incident
from interpulse.failover.takeover import command
from interpulse.failover.takeover.command import take_over
from interpulse.failover.takeover.steps import takeover_steps
from interpulse.failover.takeover.takeover import Known
from interpulse.model.ids import EARLIEST
from interpulse.model.names import TopicName
from interpulse.rules.failover_role import FailoverRole, parse_role
from interpulse.testing import ClusterPair
from tests.integration.test_switch import Killed, KilledStep, Shown
from tests.support.waiting import SECONDS_MAX

NAMESPACE = "public/default"
TOPIC = TopicName.parse("persistent://public/default/orders")
KEYS = ("cluster", "service_url", "admin_url")
CLOSED = ";lanesFrom=east:closed"
"""End of the role of west after a takeover."""


def config_of(sites: ClusterPair, state: Path, **tables: dict[str, Any]) -> PairConfig:
    pair = {"name": "orders", "sites": ["east", "west"], "namespaces": [NAMESPACE], "state": str(state)}
    addresses = {name: vars(sites.address(name)) for name in ("east", "west")}
    shown = {name: {key: fields[key] for key in KEYS} for name, fields in addresses.items()}
    limits = {"probes": 1, "report_interval_ms": 50, "settle_s": 1}
    return parse_pair_config({"pair": pair, "limits": limits, **tables, **shown})


@pytest.fixture
def sites(tmp_path: Path) -> Any:
    with ClusterPair(tmp_path / "sites", replicates=True) as pair:
        for broker in pair.brokers.values():
            broker.admin.namespaces.set_replication_clusters(NAMESPACE, ["east", "west"])
        pair.east.admin.topics.create(str(TOPIC))
        pair.wait_until_copied(str(TOPIC))
        yield pair


@pytest.fixture
async def config(sites: ClusterPair, tmp_path: Path) -> PairConfig:
    made = config_of(sites, tmp_path / "state")
    async with opened_pair(made) as pair:
        await initialise(pair)
    return made


async def publish(sites: ClusterPair, site: str, begin: int, count: int, *, keyed: bool = False) -> None:
    async with Client(sites.address(site).service_url, operation_timeout_ms=10_000) as client:
        producer = await client.create_producer(str(TOPIC), batching_enabled=False)
        async with producer:
            for number in range(begin, begin + count):
                await producer.send(str(number), key=str(number) if keyed else None)


async def contents(sites: ClusterPair, site: str) -> list[int]:
    async with Client(sites.address(site).service_url) as client:
        reader = await client.create_reader(str(TOPIC))
        found = []
        while await reader.has_message_available():
            found.append(int((await reader.read_next()).content or b""))
        return found


async def until_contents(sites: ClusterPair, site: str, numbers: set[int]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while set(await contents(sites, site)) != numbers:  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.05)


def role(sites: ClusterPair, site: str) -> FailoverRole:
    return parse_role(sites.brokers[site].admin.namespaces.failover_role(NAMESPACE)["role"])


async def roles(sites: ClusterPair, *names: str) -> list[str]:
    return [str(await asyncio.to_thread(role, sites, name)) for name in names]


class Asked:
    """Confirmation that keeps what it was shown."""

    def __init__(self, *, answer: bool = True) -> None:
        self.shown: list[Known] = []
        self._answer = answer

    async def __call__(self, known: Known) -> bool:
        self.shown.append(known)
        return self._answer


async def run_takeover(config: PairConfig, to: str = "west", **options: Any) -> tuple[Result, Asked, Shown]:
    asked, shown = Asked(), Shown()
    async with asyncio.timeout(SECONDS_MAX):
        return await take_over(config, to, shown, asked, **options), asked, shown


def before_of(config: PairConfig, epoch: int) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((config.state / "incidents" / str(epoch) / "before.json").read_text())
    return body


async def reported(config: PairConfig, messages: int) -> None:
    """Let a reporter run until the other site knows of so many messages that are not copied."""
    stop = asyncio.Event()
    watching = asyncio.create_task(Watch(config, lambda line: None).run(stop))
    async with SiteAccess.of(config, "west") as west, asyncio.timeout(SECONDS_MAX):
        while True:
            reports, _ = await read_reports(west, reports_topic(config))
            if TOPIC in reports and reports[TOPIC].behind_messages == messages:
                break
            await asyncio.sleep(0.05)
    stop.set()
    await watching


async def test_takeover_when_the_site_is_killed_then_names_what_is_at_stake_and_the_other_serves(
    sites: ClusterPair, config: PairConfig
) -> None:
    """F27 of the specification, in small, and the return of the lost site."""
    await publish(sites, "east", 0, 20)
    await until_contents(sites, "west", set(range(20)))
    await asyncio.to_thread(sites.stop_copying, "east")
    await publish(sites, "east", 20, 31)
    await reported(config, 31)
    await asyncio.to_thread(sites.lose, "east")
    result, asked, shown = await run_takeover(config)
    assert result.outcome is Outcome.DONE, result.warnings
    (known,) = asked.shown
    assert known.report is not None
    (stake,) = known.report.stakes
    async with SiteAccess.of(config, "west") as west:
        copied = await west.last_copied(TOPIC)
        reports, _ = await read_reports(west, reports_topic(config))
    assert (stake.topic, stake.messages, stake.copied_up_to) == (TOPIC, 31, copied)
    times = result.times
    assert f"what was published after {times['reported']}, at" in known.report.sentences()[1]
    found = [times[name] for name in ("reported", "detected", "confirmed", "promoted")]
    assert None not in found
    assert found == sorted(found, key=str)
    assert await roles(sites, "west") == [f"active;epoch=2{CLOSED}"]
    names = [line.partition(":")[0] for line in shown.lines[1:]]
    steps = ("lease", "lost", "at stake", "close way", "subscriptions", "promote", "move clients", "report")
    assert names == [f"{number} {step}" for number, step in enumerate(steps, 1)]
    body = before_of(config, 2)
    assert (body["epoch"], body["lost"], body["to"], body["report"]["messages"]) == (2, "east", "west", 31)
    rows = {row["topic"]: row for row in body["topics"]}
    assert (rows[str(TOPIC)]["copied"], rows[str(TOPIC)]["end"]) == (str(copied), str(reports[TOPIC].end))
    (row,) = [each for each in Incident.load(config.state / "incidents" / "2").topics if each.topic == TOPIC]
    assert (row.copied, row.end) == (copied, reports[TOPIC].end)
    await publish(sites, "west", 100, 5)
    await asyncio.to_thread(sites.return_, "east")
    await asyncio.to_thread(sites.start_copying, "east")
    await until_contents(sites, "east", {*range(51), *range(100, 105)})
    assert set(await contents(sites, "west")) == {*range(20), *range(100, 105)}  # the rest waits for reconcile
    with pytest.raises(OperationFailed, match=r"The incident of epoch 2 is open: \S+ has no after\.json.*reconcile"):
        await run_takeover(config, "east", even_if_alive=True)


async def everything(sites: ClusterPair) -> list[object]:
    """Return policies, topics with their ends and roles of both sites."""

    def read(site: str) -> object:
        admin = sites.brokers[site].admin
        topics = sorted(admin.topics.list(NAMESPACE))
        ends = [admin.topics.internal_stats(name)["lastConfirmedEntry"] for name in topics]
        return admin.namespaces.policies_json(NAMESPACE), topics, ends, admin.namespaces.failover_role(NAMESPACE)

    return [await asyncio.to_thread(read, name) for name in ("east", "west")]


async def test_takeover_when_the_other_site_answers_then_nothing_is_changed(
    sites: ClusterPair, config: PairConfig
) -> None:
    """F31 of the specification."""
    await publish(sites, "east", 0, 10)
    await until_contents(sites, "west", set(range(10)))
    before = await everything(sites)
    with pytest.raises(OperationFailed, match=r"east answers \(http\S+\).*: use switch --to west") as caught:
        await run_takeover(config)
    assert caught.value.outcome is Outcome.REFUSED
    assert await everything(sites) == before
    assert not (config.state / "operations").exists()


async def test_takeover_when_even_if_alive_then_the_other_site_is_fenced(
    sites: ClusterPair, config: PairConfig
) -> None:
    await publish(sites, "east", 0, 10)
    await until_contents(sites, "west", set(range(10)))
    result, asked, shown = await run_takeover(config, even_if_alive=True)
    assert result.outcome is Outcome.DONE, result.warnings
    assert await roles(sites, "east", "west") == ["fenced;epoch=1", f"active;epoch=2{CLOSED}"]
    (known,) = asked.shown
    assert (known.report, known.problem) == (None, "no report about east; interpulse failover watch makes them")
    assert known.copied[TOPIC] > EARLIEST
    assert any("answers, which is accepted" in line for line in shown.lines)
    assert before_of(config, 2)["report"] is None


async def test_takeover_when_it_is_not_confirmed_then_no_role_is_changed(
    sites: ClusterPair, config: PairConfig
) -> None:
    await asyncio.to_thread(sites.lose, "east")
    with pytest.raises(OperationFailed, match="it was not confirmed") as caught:
        await take_over(config, "west", Shown(), Asked(answer=False))
    assert caught.value.outcome is Outcome.REFUSED
    assert await roles(sites, "west") == ["standby;epoch=1"]
    assert not (config.state / "incidents").exists()
    result, *_ = await run_takeover(config)
    assert (result.outcome, await roles(sites, "west")) == (Outcome.DONE, [f"active;epoch=3{CLOSED}"])


async def killed_takeover(config: PairConfig, step: str, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(*arguments: Any) -> list[Any]:
        found = takeover_steps(*arguments)
        return [KilledStep(each, moment) if each.name == step else each for each in found]

    with monkeypatch.context() as patched:
        patched.setattr(command, "takeover_steps", steps)
        with pytest.raises(Killed):
            await run_takeover(config)


STEPS = ("lease", "lost", "at stake", "close way", "subscriptions", "promote", "move clients", "report")
WITH_ACTS = ("at stake", "close way", "promote", "move clients", "report")
MOMENTS = [*((step, "holds") for step in STEPS), *((step, "act") for step in WITH_ACTS)]


async def test_takeover_when_killed_at_each_step_then_the_same_command_ends_it(
    sites: ClusterPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kill is in the next takeover of the same site, whose incident is closed before."""
    file = tmp_path / "service-url.json"
    clients = {"move": ["file"], "file": str(file)}
    config = config_of(sites, tmp_path / "state", clients=clients)
    async with opened_pair(config) as pair:
        await initialise(pair)
    await publish(sites, "east", 0, 10)
    await until_contents(sites, "west", set(range(10)))
    async with SiteAccess.of(config, "west") as west:
        copied = str(await west.last_copied(TOPIC))
    await asyncio.to_thread(sites.lose, "east")
    for number, (step, moment) in enumerate(MOMENTS):
        file.unlink(missing_ok=True)
        await killed_takeover(config, step, moment, monkeypatch)
        result, *_ = await run_takeover(config)
        assert result.outcome is Outcome.DONE, (step, moment, result.warnings)
        epoch = number + 2
        assert await roles(sites, "west") == [f"active;epoch={epoch}{CLOSED}"], (step, moment)
        rows = {row["topic"]: row for row in before_of(config, epoch)["topics"]}
        assert rows[str(TOPIC)]["copied"] == copied
        assert json.loads(file.read_text()) == {"serviceUrl": sites.address("west").service_url}
        (config.state / "incidents" / str(epoch) / "after.json").write_text("{}")
    paths = [path for path in (config.state / "operations").glob("*.jsonl") if path.name.count(".") == 1]
    assert [Journal(path).outcome for path in paths] == ["DONE"] * len(MOMENTS)


async def test_takeover_when_the_site_comes_back_meanwhile_then_undo_takes_it_back(
    sites: ClusterPair, config: PairConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.to_thread(sites.lose, "east")
    await killed_takeover(config, "close way", "holds", monkeypatch)
    assert await roles(sites, "west") == ["standby;epoch=1;lanesFrom=east:closed"]
    await asyncio.to_thread(sites.return_, "east")
    with pytest.raises(OperationFailed, match="take the takeover back with undo, or go on with --even-if-alive"):
        await run_takeover(config)
    async with opened_pair(config) as pair:
        with pytest.raises(OperationFailed, match=r"The takeover to west of \S+ is unfinished: give takeover --to"):
            await switch(pair, "west", Shown())
        assert (await undo(pair, Shown())).outcome is Outcome.TAKEN_BACK
    assert await roles(sites, "east", "west") == ["active;epoch=1", "standby;epoch=1"]
    assert json.loads((config.state / "incidents" / "2" / "after.json").read_text()) == {"outcome": "TAKEN_BACK"}


async def test_takeover_when_another_machine_began_it_then_goes_on_with_resume(
    sites: ClusterPair, config: PairConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other machine has neither the journal nor the incident."""
    await publish(sites, "east", 0, 10)
    await until_contents(sites, "west", set(range(10)))
    await asyncio.to_thread(sites.lose, "east")
    await killed_takeover(config, "close way", "act", monkeypatch)
    elsewhere = replace(config, state=tmp_path / "elsewhere")
    with pytest.raises(OperationFailed, match=r"takeover to west that \S+@.* is unfinished: go on with --resume"):
        await run_takeover(elsewhere)
    result, asked, _ = await run_takeover(elsewhere, is_resumed=True)
    assert (result.outcome, len(asked.shown)) == (Outcome.DONE, 1)
    assert await roles(sites, "west") == [f"active;epoch=2{CLOSED}"]
    assert before_of(elsewhere, 2)["topics"] == before_of(config, 2)["topics"]


async def test_takeover_when_the_site_redirects_after_a_switch_then_serves_again(
    sites: ClusterPair, config: PairConfig
) -> None:
    await publish(sites, "east", 0, 10)
    await until_contents(sites, "west", set(range(10)))
    async with opened_pair(config) as pair:
        await switch(pair, "west", Shown())
    url = sites.address("west").service_url
    assert await roles(sites, "east", "west") == [f"moved;epoch=2;url={url}", "active;epoch=2"]
    await asyncio.to_thread(sites.lose, "west")
    result, *_ = await run_takeover(config, "east")
    assert (result.outcome, await roles(sites, "east")) == (Outcome.DONE, ["active;epoch=3;lanesFrom=west:closed"])
    await publish(sites, "east", 10, 5)


async def test_takeover_when_the_loss_interrupted_a_switch_then_replaces_it(
    sites: ClusterPair, config: PairConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    from interpulse.failover import commands
    from interpulse.failover.steps import switch_steps

    def steps(*arguments: Any, **options: Any) -> list[Any]:
        found = switch_steps(*arguments, **options)
        return [KilledStep(each, "act") if each.name == "fence" else each for each in found]

    with monkeypatch.context() as patched:
        patched.setattr(commands, "switch_steps", steps)
        async with opened_pair(config) as pair:
            with pytest.raises(Killed):
                await switch(pair, "west", Shown())
    await asyncio.to_thread(sites.lose, "east")
    result, *_ = await run_takeover(config)
    assert (result.outcome, await roles(sites, "west")) == (Outcome.DONE, [f"active;epoch=3{CLOSED}"])
    paths = sorted(path for path in (config.state / "operations").glob("*.jsonl") if path.name.count(".") == 1)
    assert sorted(str(Journal(path).outcome) for path in paths) == ["DONE", "SUPERSEDED"]
