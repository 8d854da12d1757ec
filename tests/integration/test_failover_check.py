"""The preflight of a switch between two clusters of ours, one of them with faults."""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from interpulse.cli.admin.admin import admin
from interpulse.cli.failover.check import check
from interpulse.cli.support.running import UNUSABLE
from interpulse.failover.pair_config import PairConfig, parse_pair_config
from interpulse.failover.preflight import policies
from interpulse.failover.preflight.findings import CheckKind
from interpulse.failover.preflight.gathering import SiteGathering, preflight, serving_site
from interpulse.failover.preflight.judgement import READY, REFUSED, WARNED
from interpulse.failover.site import SiteAccess
from interpulse.model.errors import AuthorizationError
from interpulse.testing import ClusterPair, InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient

NAMESPACE = "public/default"
TOPICS = ("paid", "sent", "kept")
PARTITIONS = 4
FIXED_REQUESTS = 12


def name(topic: str) -> str:
    return f"persistent://{NAMESPACE}/{topic}"


def report(source: InProcessBroker, target: str, topics: list[str]) -> None:
    """Report as a job does that copies these topics."""
    records = [{"topic": topic, "cluster": target, "state": "REPLICATING", "lagMessages": 0} for topic in topics]
    source.admin.namespaces.report_replication_status(NAMESPACE, records)


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterPair]:
    """Two clusters that are alike: nothing stands in the way of a switch."""
    monkeypatch.setattr(policies, "_FREE_SHARE", 0.0)  # the disk of the tests may be full
    settings = {"allowAutoTopicCreation": False, "brokerDeleteInactiveTopicsEnabled": False}
    with ClusterPair(tmp_path, settings) as started:
        for number in range(3):
            started.west.admin.topics.create(name(f"first-{number}"))  # so that its ledgers have higher numbers
        for number in range(3):
            started.west.admin.topics.delete(name(f"first-{number}"))
        for site in (started.east, started.west):
            site.admin.topics.create_partitioned(name("paid"), PARTITIONS)
            for topic in TOPICS[1:]:
                site.admin.topics.create(name(topic))
            site.admin.namespaces.set_deduplication(NAMESPACE, True)
        for site in (started.east, started.west):
            site.admin.namespaces.set_replication_clusters(NAMESPACE, ["east", "west"], partitions_compared=False)
        topics = [*(f"{name('paid')}-partition-{index}" for index in range(PARTITIONS)), *map(name, TOPICS[1:])]
        report(started.east, "west", topics)
        report(started.west, "east", topics)
        yield started


@pytest.fixture
def config(pair: ClusterPair, tmp_path: Path) -> PairConfig:
    return parse_pair_config(body_of(pair.east, pair.west, tmp_path))


def body_of(east: InProcessBroker, west: InProcessBroker, directory: Path) -> dict[str, Any]:
    sites = {
        site: {"cluster": site, "service_url": broker.service_url, "admin_url": broker.web_url}
        for site, broker in (("east", east), ("west", west))
    }
    pair = {"name": "orders", "sites": ["east", "west"], "namespaces": [NAMESPACE], "state": str(directory / "state")}
    return {"pair": pair, **sites}


@pytest.fixture
async def sites(config: PairConfig) -> AsyncIterator[tuple[SiteAccess, SiteAccess]]:
    async with AsyncExitStack() as opened:
        found = SiteAccess.of(config, "east"), SiteAccess.of(config, "west")
        for site in found:
            opened.push_async_callback(site.close)
        yield found


async def test_check_when_both_sites_are_alike_then_finds_nothing(
    config: PairConfig, sites: tuple[SiteAccess, SiteAccess]
) -> None:
    result = await preflight(config, *sites)
    assert result.findings == ()
    assert result.exit_code == READY
    assert await serving_site(config, sites) == "east"


async def refused(*_: object, **__: object) -> None:
    raise AuthorizationError("the role has no right to do this")


async def refusals(config: PairConfig, sites: tuple[SiteAccess, SiteAccess]) -> set[str]:
    result = await preflight(config, *sites)
    assert result.exit_code == REFUSED
    found = [each for each in result.findings if each.kind == CheckKind.PERMISSION_OF_OURS]
    assert all(each.what.endswith("is refused: the role has no right to do this") for each in found)
    return {each.what.partition(" is refused: ")[0] for each in found}


async def test_check_when_statistics_and_lookups_are_refused_then_names_each(
    config: PairConfig, sites: tuple[SiteAccess, SiteAccess], monkeypatch: pytest.MonkeyPatch
) -> None:
    west = sites[1]
    monkeypatch.setattr(west.admin.topics, "stats", refused)
    monkeypatch.setattr(west.client, "get_partitions_for_topic", refused)
    assert await refusals(config, sites) == {
        f"reading statistics of {name('sent')}",
        f"reading statistics of {name('kept')}",
        f"looking up {name('paid')}-partition-0",
    }


async def test_check_when_the_role_is_no_super_user_then_names_what_it_cannot_read(
    config: PairConfig, sites: tuple[SiteAccess, SiteAccess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sites[1].admin.brokers, "runtime_configuration", refused)
    assert await refusals(config, sites) == {"reading the configuration", f"reading {NAMESPACE}"}


# ---- Faults


@pytest.fixture
def file(pair: ClusterPair, tmp_path: Path) -> Path:
    path, body = tmp_path / "pair.toml", body_of(pair.east, pair.west, tmp_path)
    tables = ("\n".join(f"{key} = {json.dumps(value)}" for key, value in body[table].items()) for table in body)
    path.write_text("\n".join(f"[{name}]\n{table}" for name, table in zip(body, tables, strict=True)))
    return path


@pytest.fixture
def faulty(pair: ClusterPair) -> Iterator[None]:
    """The six faults: four on west, and two kinds of clients on east."""
    east, west = pair.east.admin, pair.west.admin
    west.topics.delete(name("kept"), force=True)
    west.topics.delete_partitioned(name("paid"), force=True)
    west.topics.create_partitioned(name("paid"), 2)
    west.namespaces.set_deduplication(NAMESPACE, False)
    west.namespaces.set_message_ttl(NAMESPACE, 3600)
    with ExitStack() as connected:
        billing, reader = (connected.enter_context(RawClient(pair.east.service_url, greet=False)) for _ in range(2))
        greet(billing, "Pulsar-CPP-v3.5.1")
        greet(reader, "Pulsar-CPP-v3.5.1")
        billing.ask(commands.subscribe(1, 1, name("sent"), "billing", kind=pb.CommandSubscribe.Shared))
        reader.ask(commands.subscribe(1, 1, name("sent"), "reader-1", durable=False))
        assert set(east.topics.stats(name("sent"))["subscriptions"]) == {"billing", "reader-1"}
        yield


def greet(client: RawClient, version: str) -> None:
    client.send(commands.connect(client_version=version, protocol_version=21, feature_flags=pb.FeatureFlags()))
    client.receive()


def run(command: click.Command, arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, shlex.split(arguments), catch_exceptions=False)
    return result.exit_code, result.output


@pytest.mark.usefixtures("faulty")
def test_check_when_sites_differ_in_six_ways_then_reports_exactly_these(pair: ClusterPair, file: Path) -> None:
    """F33 of failover.md."""
    code, output = run(check, f"--config {file} -o json")
    shown = json.loads(output)
    assert (code, shown["ready"], shown["to"]) == (REFUSED, False, "west")
    assert [(each["severity"], each["kind"], each["site"]) for each in shown["findings"]] == [
        ("ERROR", "DEDUP_OFF", "west"),
        ("ERROR", "TOPIC_MISSING", "west"),
        ("ERROR", "TOPIC_PARTITIONS", "west"),
        ("WARNING", "READERS", "east"),
        ("WARNING", "SUBSCRIPTION_NOT_MARKED", "east"),
        ("WARNING", "TTL_SHORTER", "west"),
    ]
    on_west, on_east = (f"interpulse-admin --admin-url {site.web_url}" for site in (pair.west, pair.east))
    remedies = {each["kind"]: each["remedy"] for each in shown["findings"]}
    assert remedies == {
        "DEDUP_OFF": f"{on_west} namespaces set-deduplication {NAMESPACE} --enable",
        "TOPIC_MISSING": f"{on_west} topics create {name('kept')}",
        "TOPIC_PARTITIONS": f"{on_west} topics update-partitioned-topic {name('paid')} -p {PARTITIONS}",
        "READERS": "restart these programs once they are at west",
        "SUBSCRIPTION_NOT_MARKED": (
            f"{on_east} topics set-replicated-subscription-status {name('sent')} -s billing --enable"
        ),
        "TTL_SHORTER": f"{on_west} namespaces remove-message-ttl {NAMESPACE}",
    }


@pytest.mark.usefixtures("faulty")
def test_remedies_when_run_as_printed_then_only_the_reader_is_left(file: Path) -> None:
    """A marked subscription is created on west by the job, which these clusters do not have."""
    _, output = run(check, f"--config {file} -o json")
    for finding in json.loads(output)["findings"]:
        program, _, arguments = finding["remedy"].partition(" ")
        if program == "interpulse-admin":
            assert run(admin, arguments)[0] == 0, finding
    code, output = run(check, f"--config {file} -o json")
    assert (code, [each["kind"] for each in json.loads(output)["findings"]]) == (
        WARNED,
        ["READERS", "SUBSCRIPTION_MISSING"],
    )


@pytest.mark.usefixtures("faulty")
def test_check_when_errors_are_accepted_then_warns(file: Path) -> None:
    accepted = " ".join(f"--accept {kind}" for kind in ("DEDUP_OFF", "TOPIC_MISSING", "TOPIC_PARTITIONS"))
    code, output = run(check, f"--config {file} --to west {accepted}")
    assert code == WARNED
    heading, _, columns, *rows = output.splitlines()
    assert heading == "orders: east -> west, ready, 6 findings"
    assert columns.split() == ["SEVERITY", "KIND", "SITE", "SUBJECT", "WHAT", "REMEDY"]
    assert len(rows) == 6


def test_check_when_a_way_has_stopped_then_refuses(pair: ClusterPair, file: Path) -> None:
    record = {"cluster": "west", "state": "HELD", "reason": "de-duplication is off", "remedy": "switch it on"}
    pair.east.admin.namespaces.report_replication_status(NAMESPACE, [{"topic": name("sent"), **record}])
    code, output = run(check, f"--config {file} -o json")
    (finding,) = json.loads(output)["findings"]
    assert (code, finding["kind"], finding["remedy"]) == (REFUSED, "NOT_COPIED", "switch it on")
    assert finding["what"] == "not copied from east to west: it is HELD, de-duplication is off"
    assert finding["subjects"] == [name("sent")]


def test_check_when_a_site_does_not_answer_then_names_it(pair: ClusterPair, file: Path) -> None:
    pair.west.stop()
    code, output = run(check, f"--config {file}")
    assert (code, pair.west.web_url in output) == (UNUSABLE, True), output


@pytest.mark.parametrize(
    ("options", "reason"),
    [("--accept READER", "READER is none of"), ("--to north", "north is none of the sites east, west")],
)
def test_check_when_an_option_is_wrong_then_names_it(file: Path, options: str, reason: str) -> None:
    code, output = run(check, f"--config {file} {options}")
    assert (code, reason in output) == (UNUSABLE, True), output


def test_roles_when_both_sites_serve_then_the_older_one_is_named(pair: ClusterPair, file: Path) -> None:
    pair.east.admin.namespaces.set_failover_role(NAMESPACE, "active", 4)
    pair.west.admin.namespaces.set_failover_role(NAMESPACE, "active", 5)
    code, output = run(check, f"--config {file} -o json")
    shown = json.loads(output)
    (finding,) = shown["findings"]
    assert (code, finding["kind"], finding["site"], shown["to"]) == (REFUSED, "ROLE", "east", "east")
    assert run(admin, finding["remedy"].removeprefix("interpulse-admin "))[0] == 0
    assert run(check, f"--config {file}")[0] == READY


# ---- Cost


@pytest.mark.parametrize("count", [20, 60])
async def test_gathering_when_there_are_many_topics_then_asks_twice_for_each(
    config: PairConfig, sites: tuple[SiteAccess, SiteAccess], count: int
) -> None:
    """Their statistics and their schemas; all else is asked once, or once for a namespace."""
    east, _ = sites
    for number in range(count):
        await east.admin.topics.create(name(f"many-{number}"))
    gathering = SiteGathering(east, "west", requests_per_second=10_000)
    facts = await gathering.facts()
    topics = count + len(TOPICS)
    assert len(facts.topics) == topics + PARTITIONS - 1
    assert facts.disk is not None
    assert gathering.paced.count - 2 * topics == FIXED_REQUESTS
