"""A switch from a real Pulsar, whose own replicator copies, to a broker of ours: F25 of the specification in small."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest

from interpulse.failover.commands import initialise, switch
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.pair import opened_pair
from interpulse.failover.pair_config import PairConfig, parse_pair_config
from interpulse.failover.real_site import CREATION_PROPERTY
from interpulse.failover.running import Result
from interpulse.failover.site import SiteAccess
from interpulse.model.names import NamespaceName
from interpulse.testing import InProcessBroker
from tests.integration.test_switch import Shown
from tests.interop.real_pulsar import Address
from tests.interop.replicated_pairs import Cluster, Pair, replicating, until
from tests.support.official_client import connected

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PARTITIONS = 2


@pytest.fixture
def pair(real_pulsar: Address, tmp_path: Path) -> Iterator[Pair]:
    name = f"ours-{uuid.uuid4().hex[:6]}"
    with InProcessBroker(tmp_path, {"clusterName": name, "replicationJob": "external"}) as ours:
        source = Cluster(real_pulsar.web_url, real_pulsar.service_url, "standalone", is_ours=False)
        yield Pair(source, Cluster(ours.web_url, ours.service_url, name)).begin()


def config_of(pair: Pair, directory: Path, **limits: int) -> PairConfig:
    sites = {
        site: {"cluster": cluster.name, "service_url": cluster.service_url, "admin_url": cluster.web_url}
        for site, cluster in (("east", pair.source), ("west", pair.target))
    }
    table = {"name": "orders", "sites": ["east", "west"], "namespaces": [pair.namespace], "state": str(directory)}
    moves = {"move": ["redirect", "file"], "file": str(directory / "service-url.json")}
    return parse_pair_config({"pair": table, "limits": {"settle_s": 1, **limits}, "clients": moves, **sites})


def begin(pair: Pair, topic: str) -> None:
    pair.enable()
    pair.target.know(pair.source)
    pair.target.run(f"namespaces set-clusters {pair.namespace} -c {pair.both}")
    pair.source.run(f"topics create-partitioned-topic {topic} -p {PARTITIONS}")
    with connected(pair.source.service_url) as client:
        client.create_producer(topic).close()
    for index in range(PARTITIONS):
        until(replicating(pair, f"{topic}-partition-{index}"), True)


async def say_that_copies_go_back(pair: Pair, config: PairConfig) -> None:
    """Report what a job from ours to the real site would; this test has none."""
    west = SiteAccess.of(config, "west")
    records = [
        {"topic": str(topic), "cluster": pair.source.name, "state": "REPLICATING"} for topic in await west.topics()
    ]
    await west.admin.namespaces.report_replication_status(NamespaceName.parse(pair.namespace), records)
    await west.close()


class Sending:
    """A program that publishes to the real site with the official client, until it is stopped."""

    def __init__(self, client: pulsar.Client, topic: str) -> None:
        self._producer = client.create_producer(topic, batching_enabled=False, send_timeout_millis=300_000)
        self._stop = threading.Event()
        self.stored: list[bytes] = []
        self.sent = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.01):
            content = b"%d" % self.sent
            self.sent += 1
            self._producer.send_async(content, lambda result, _, content=content: self._note(result, content))

    def _note(self, result: pulsar.Result, content: bytes) -> None:
        assert result == pulsar.Result.Ok
        self.stored.append(content)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


async def contents(config: PairConfig, site: str, topic: str) -> set[bytes]:
    access, found = SiteAccess.of(config, site), set()
    for index in range(PARTITIONS):
        reader = await access.client.create_reader(f"{topic}-partition-{index}")
        while await reader.has_message_available():
            found.add((await reader.read_next()).content or b"")
    await access.close()
    return found


async def run_switch(config: PairConfig, to: str = "west") -> Result:
    async with opened_pair(config) as opened:
        return await switch(opened, to, Shown(), accepted=("WAY_BACK_MISSING", "AUDIT", "DEDUP_OFF"))


async def properties(config: PairConfig, namespace: str) -> dict[str, str]:
    access = SiteAccess.of(config, "east")
    found = await access.admin.namespaces.properties(namespace)
    await access.close()
    return found


async def test_switch_when_the_origin_is_real_then_its_messages_are_at_the_target_before_it_serves(
    pair: Pair, tmp_path: Path
) -> None:
    topic, config = pair.topic("paid"), config_of(pair, tmp_path)
    await asyncio.to_thread(begin, pair, topic)
    async with opened_pair(config) as opened:
        await initialise(opened)
    with connected(pair.source.service_url) as client:
        sending = Sending(client, topic)
        try:
            await asyncio.to_thread(until, lambda: len(sending.stored) > 50, True)
            await say_that_copies_go_back(pair, config)
            result = await run_switch(config)
        finally:
            sending.stop()
        assert result.outcome is Outcome.NOTICED  # no job copies the heartbeat back
        arrived = await contents(config, "west", topic)
        assert len(arrived) >= 50
        recorded = await properties(config, pair.namespace)
        assert recorded["interpulse.failover.role"].startswith("moved;epoch=2;url=pulsar://")
        assert CREATION_PROPERTY not in recorded
        await asyncio.to_thread(
            until, lambda: len(sending.stored) == sending.sent, True
        )  # stragglers after the release
        await asyncio.to_thread(
            until, lambda: asyncio.run(contents(config, "west", topic)) == set(sending.stored), True
        )
    await say_that_copies_go_back(pair, config)
    result = await run_switch(config, "east")  # all that is at west came from east, and its heartbeat arrives
    assert [warning for warning in result.warnings if "heartbeat" in warning] == []
    assert (await properties(config, pair.namespace))["interpulse.failover.role"].startswith("active;epoch=3")
    async with opened_pair(config) as opened:
        roles = await opened.site("west").roles()
    assert [str(role).partition(";url")[0] for role in roles.values()] == ["moved;epoch=3"]


async def test_switch_when_the_real_replicator_is_cut_off_then_is_taken_back(pair: Pair, tmp_path: Path) -> None:
    topic, config = pair.topic("paid"), config_of(pair, tmp_path, drain_s=2)
    await asyncio.to_thread(begin, pair, topic)
    async with opened_pair(config) as opened:
        await initialise(opened)
    await say_that_copies_go_back(pair, config)
    before = await properties(config, pair.namespace)
    await asyncio.to_thread(pair.target.run, f"topics set-publish-rate {topic} -m 1 -b 1")
    with connected(pair.source.service_url) as client:
        producer = client.create_producer(topic, batching_enabled=False)
        for number in range(50):
            producer.send(b"%d" % number)
        with pytest.raises(OperationFailed, match="drain was not reached in 2 s") as caught:
            await run_switch(config)
        assert caught.value.outcome is Outcome.TAKEN_BACK
        await asyncio.to_thread(producer.send, b"again")
    after = await properties(config, pair.namespace)
    assert after.keys() == before.keys()
    assert after["interpulse.failover.role"].startswith("active;epoch=1")
