"""The watch over the sites of a client, against scripted brokers and documents."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from interpulse.client import Client
from interpulse.client.config import ClientConfig
from interpulse.client.credentials import Credentials
from interpulse.client.failover.auto import AutoFailover
from interpulse.client.failover.controlled import ControlledFailover
from interpulse.client.failover.sites import Site
from interpulse.client.failover.watch import first_site, watch_sites
from interpulse.model.errors import ServerError
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support.scripted_broker import ScriptedBroker
from tests.support.stub_web import StubWeb
from tests.support.waiting import eventually

EAST, WEST = Site("pulsar://east:6650", credentials=Credentials.token("token:e")), Site("pulsar://west:6650")


class FakeSession:
    """Session that remembers where it was sent."""

    def __init__(self, url: str) -> None:
        self.config = ClientConfig(url)
        self.topic_in_use: TopicName | None = None
        self.site_lost = asyncio.Event()
        self.silent_s = 7.0
        self.changes: list[tuple[Site, str, float]] = []
        self.failures = 0
        """Number of changes to fail."""

    def change_site(self, site: Site, reason: str, *, silent_s: float) -> None:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("a fault of the client")
        self.changes.append((site, reason, silent_s))


@pytest.fixture
async def other() -> AsyncIterator[ScriptedBroker]:
    async with ScriptedBroker() as scripted:
        yield scripted


@pytest.fixture
async def session(broker: ScriptedBroker) -> FakeSession:
    return FakeSession(broker.url)


@pytest.mark.parametrize(
    ("url", "options", "problem"),
    [
        (WEST.service_url, {}, "starts at the first"),
        (EAST.service_url, {"credentials": Credentials.token("token:x")}, "give each Site its own"),
    ],
)
def test_client_when_its_settings_contradict_its_sites_then_is_refused(
    url: str, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        Client(url, failover=AutoFailover([EAST, WEST]), **options)


def test_client_when_it_has_sites_then_starts_at_the_first() -> None:
    client = Client(EAST.service_url, failover=AutoFailover([EAST, WEST]))
    assert (client.site, client.config.credentials) == (EAST, EAST.credentials)
    assert Client(EAST.service_url).site is None


def test_client_when_a_document_decides_then_starts_where_its_settings_say() -> None:
    config = ClientConfig(EAST.service_url, credentials=EAST.credentials)
    assert first_site(EAST.service_url, config, ControlledFailover("/s")) == EAST


async def test_sites_when_the_present_one_refuses_this_client_then_stays_and_warns_once(
    session: FakeSession, broker: ScriptedBroker, other: ScriptedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    refusal = ServerError.AuthenticationError
    broker.scripts[pb.BaseCommand.CONNECT] = lambda peer, _: peer.refuse(refusal, "unknown token")
    rules = AutoFailover([broker.url, other.url], fail_after=1, interval_s=0.001)
    watch = asyncio.create_task(watch_sites(session, rules, Site(broker.url)))
    await eventually(lambda: len(broker.peers) > 5)
    watch.cancel()
    await asyncio.wait([watch])
    assert not session.changes
    assert caplog.text.count("refuses the credentials") == 1


@pytest.mark.parametrize(("probe", "asked"), [("lookup", "in-use"), ("lookup", "probed"), ("connect", None)])
async def test_probe_when_it_looks_up_then_asks_for_a_topic_in_use(
    session: FakeSession, broker: ScriptedBroker, probe: str, asked: str | None
) -> None:
    session.topic_in_use = None if asked == "probed" else TopicName.parse("in-use")
    rules = AutoFailover([broker.url, WEST], probe=probe, probe_topic="probed", interval_s=0.001)  # type: ignore[arg-type]
    watch = asyncio.create_task(watch_sites(session, rules, Site(broker.url)))
    wanted = pb.BaseCommand.CONNECT if asked is None else pb.BaseCommand.LOOKUP
    await eventually(lambda: broker.count(wanted))
    watch.cancel()
    await asyncio.wait([watch])
    topics = {command.lookupTopic.topic for command in broker.all_of(pb.BaseCommand.LOOKUP)}
    assert topics == (set() if asked is None else {f"persistent://public/default/{asked}"})


async def test_site_when_the_present_one_is_dead_then_changes_once(
    session: FakeSession, broker: ScriptedBroker, other: ScriptedBroker
) -> None:
    broker.scripts[pb.BaseCommand.CONNECT] = lambda peer, _: peer.drop()
    rules = AutoFailover([broker.url, other.url], fail_after=3, interval_s=0.001)
    watch = asyncio.create_task(watch_sites(session, rules, Site(broker.url)))
    await eventually(lambda: session.changes and len(other.peers))
    await eventually(lambda: len(broker.peers) == 3)
    watch.cancel()
    await asyncio.wait([watch])
    ((site, reason, silent_s),) = session.changes
    assert site == Site(other.url)
    assert reason == f"3 probes of {broker.url} in a row failed"
    assert silent_s > 0


async def test_document_when_it_names_another_site_then_that_is_asked_before_the_change(
    session: FakeSession, web: StubWeb, broker: ScriptedBroker, other: ScriptedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    other.scripts[pb.BaseCommand.CONNECT] = lambda peer, _: peer.drop()
    web.answer("GET", "/sites", {"serviceUrl": other.url})
    options = ControlledFailover(f"{web.url}/sites", interval_s=0.001)
    watch = asyncio.create_task(watch_sites(session, options, Site(broker.url)))
    await eventually(lambda: len(other.peers) > 2)
    assert not session.changes
    del other.scripts[pb.BaseCommand.CONNECT]
    await eventually(lambda: session.changes)
    watch.cancel()
    await asyncio.wait([watch])
    assert session.changes == [(Site(other.url), f"{web.url}/sites names it", 7.0)]
    assert caplog.text.count("does not answer") == 1


async def test_document_when_the_present_site_is_lost_then_is_read_without_waiting(
    session: FakeSession, broker: ScriptedBroker, other: ScriptedBroker, tmp_path: Path
) -> None:
    source = tmp_path / "sites.json"
    source.write_text("{}")
    options = ControlledFailover(str(source), interval_s=600)
    watch = asyncio.create_task(watch_sites(session, options, Site(broker.url)))
    source.write_text(json.dumps({"serviceUrl": other.url}))
    session.site_lost.set()
    await eventually(lambda: session.changes)
    watch.cancel()
    await asyncio.wait([watch])


@pytest.mark.parametrize("text", ["", "[]", '{"serviceUrl": 7}', None, '{"serviceUrl": "no address"}'])
async def test_document_when_it_cannot_be_used_then_changes_nothing(
    session: FakeSession, broker: ScriptedBroker, tmp_path: Path, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    source = tmp_path / "sites.json"
    if text is not None:
        source.write_text(text)
    watch = asyncio.create_task(watch_sites(session, ControlledFailover(str(source), interval_s=0.001), EAST))
    await eventually(lambda: "source cannot be used" in caplog.text)
    watch.cancel()
    await asyncio.wait([watch])
    assert not session.changes


@pytest.mark.parametrize("is_automatic", [True, False])
async def test_watch_when_a_change_fails_unexpectedly_then_goes_on(
    session: FakeSession, broker: ScriptedBroker, other: ScriptedBroker, tmp_path: Path, *, is_automatic: bool
) -> None:
    source = tmp_path / "sites.json"
    source.write_text(json.dumps({"serviceUrl": other.url}))
    broker.scripts[pb.BaseCommand.CONNECT] = lambda peer, _: peer.drop()
    options: AutoFailover | ControlledFailover = ControlledFailover(str(source), interval_s=0.001)
    if is_automatic:
        options = AutoFailover([broker.url, other.url], fail_after=1, interval_s=0.001)
    session.failures = 2
    watch = asyncio.create_task(watch_sites(session, options, Site(broker.url)))
    await eventually(lambda: session.changes)
    watch.cancel()
    await asyncio.wait([watch])
    assert session.failures == 0
