"""Questions to a site, against scripted brokers."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import pytest

from interpulse.client.config import ClientConfig
from interpulse.client.credentials import Credentials
from interpulse.client.failover.auto import Health
from interpulse.client.failover.probe import SiteProbe, health_after
from interpulse.client.failover.sites import Site
from interpulse.model.errors import (
    AuthenticationError,
    AuthorizationError,
    CertificateError,
    MetadataError,
    NotConnected,
    OperationTimeout,
    PulsarError,
    ServerError,
    TooManyRequests,
    TopicNotFound,
    UnknownError,
)
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.scripted_broker import ScriptedBroker
from tests.support.stub_web import StubWeb

TOPIC = TopicName.parse("t")
CONFIG = ClientConfig("pulsar://elsewhere:6650", credentials=Credentials.token("token:elsewhere"))


@pytest.fixture
def refusing_port() -> int:
    """A port at which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.fixture
async def probe(broker: ScriptedBroker) -> AsyncIterator[SiteProbe]:
    made = SiteProbe(CONFIG, Site(broker.url, credentials=Credentials.token("token:own")), timeout_s=0.5)
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("failure", "health"),
    [
        (None, Health.WELL),
        (TopicNotFound(), Health.WELL),
        (TooManyRequests(), Health.WELL),
        (AuthenticationError(), Health.REFUSED),
        (CertificateError(), Health.REFUSED),
        (AuthorizationError(), Health.REFUSED),
        (NotConnected(), Health.DEAD),
        (OperationTimeout(), Health.DEAD),
        (MetadataError(), Health.DEAD),
        (UnknownError(), Health.DEAD),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, PulsarError) else str(value),
)
def test_health_when_a_site_answers(failure: PulsarError | None, health: Health) -> None:
    assert health_after(failure) is health


async def test_probe_when_answered_then_has_sent_the_credentials_of_the_site(
    probe: SiteProbe, broker: ScriptedBroker
) -> None:
    assert await probe.health(TOPIC) is Health.WELL
    assert await probe.health(None) is Health.WELL
    (peer,) = broker.peers  # one connection for both
    assert peer.connect.auth_data == b"own"
    assert broker.count(pb.BaseCommand.LOOKUP) == 1


async def test_probe_when_the_credentials_are_refused_then_says_so(probe: SiteProbe, broker: ScriptedBroker) -> None:
    refusal = ServerError.AuthenticationError
    broker.scripts[pb.BaseCommand.CONNECT] = lambda peer, _: peer.refuse(refusal, "unknown token")
    assert await probe.health(TOPIC) is Health.REFUSED


@pytest.mark.parametrize("silent", [pb.BaseCommand.CONNECT, pb.BaseCommand.LOOKUP])
async def test_probe_when_there_is_no_answer_then_is_dead_until_there_is_one(
    probe: SiteProbe, broker: ScriptedBroker, silent: int
) -> None:
    broker.scripts[silent] = lambda peer, frame: None
    assert await probe.health(TOPIC) is Health.DEAD
    del broker.scripts[silent]
    assert await probe.health(TOPIC) is Health.WELL


async def test_probe_when_a_lookup_is_refused_then_is_not_repeated(probe: SiteProbe, broker: ScriptedBroker) -> None:
    code = ServerError.ServiceNotReady
    broker.scripts[pb.BaseCommand.LOOKUP] = lambda peer, frame: peer.say(
        commands.lookup_error(frame.command.lookupTopic.request_id, code, "starting")
    )
    assert await probe.health(TOPIC) is Health.DEAD
    assert broker.count(pb.BaseCommand.LOOKUP) == 1


async def test_probe_when_the_first_host_refuses_then_asks_the_next(broker: ScriptedBroker, refusing_port: int) -> None:
    hosts = broker.url.removeprefix("pulsar://")
    probe = SiteProbe(CONFIG, Site(f"pulsar://127.0.0.1:{refusing_port},{hosts}"), timeout_s=5)
    assert await probe.health(TOPIC) is Health.WELL
    await probe.close()


async def test_probe_when_the_first_host_hangs_then_begins_with_the_next_one(broker: ScriptedBroker) -> None:
    broker.scripts[pb.BaseCommand.LOOKUP] = lambda peer, frame: None
    async with ScriptedBroker() as other:
        hosts = ",".join(each.url.removeprefix("pulsar://") for each in (broker, other))
        probe = SiteProbe(CONFIG, Site(f"pulsar://{hosts}"), timeout_s=0.5)
        assert await probe.health(TOPIC) is Health.DEAD
        assert await probe.health(TOPIC) is Health.WELL
        await probe.close()


async def test_probe_when_nothing_listens_then_is_dead_without_waiting(refusing_port: int) -> None:
    probe = SiteProbe(CONFIG, Site(f"pulsar://127.0.0.1:{refusing_port}"), timeout_s=600)
    assert await probe.health(TOPIC) is Health.DEAD


async def test_probe_when_lookups_use_http_then_connects_to_the_broker_of_the_answer(
    web: StubWeb, broker: ScriptedBroker
) -> None:
    probe = SiteProbe(CONFIG, Site(web.url), timeout_s=5)
    path = "/lookup/v2/topic/persistent/public/default/t"
    web.answer("GET", path, {"brokerUrl": broker.url})
    web.answer("GET", path, {"reason": "no metadata"}, status=500)
    assert await probe.health(TOPIC) is Health.WELL
    assert len(broker.peers) == 1
    assert await probe.health(TOPIC) is Health.DEAD
    await probe.close()
