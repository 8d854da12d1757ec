"""Authentication and authorisation side by side with a real Pulsar, and official clients with tokens on our broker."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable

import pulsar
import pytest

from interpulse.testing import InProcessBroker
from tests.front_ends.access import GONE, TOPIC, Player, differing, token
from tests.interop.conftest import JavaCheck
from tests.interop.pulsar_with_tokens import PulsarWithTokens
from tests.support.official_client import RECEIVE_MS
from tests.support.tokens import SECRET

RENEWED_SECONDS_MAX = 120

pytestmark = [pytest.mark.interop]


def official(url: str, supplier: str | Callable[[], str], *, timeout_s: int = 20) -> pulsar.Client:
    """An official client that brings a token."""
    quiet = pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null")
    return pulsar.Client(
        url, authentication=pulsar.AuthenticationToken(supplier), operation_timeout_seconds=timeout_s, logger=quiet
    )


@pytest.mark.parametrize("front_end", ["binary", "http"])
def test_official_client_when_it_has_a_token_then_produces_and_consumes(
    token_broker: InProcessBroker, front_end: str
) -> None:
    client = official(token_broker.service_url if front_end == "binary" else token_broker.web_url, token("acme-admin"))
    try:
        consumer = client.subscribe(TOPIC, f"official-{front_end}")
        client.create_producer(TOPIC).send(b"hello")
        assert consumer.receive(RECEIVE_MS).data() == b"hello"
    finally:
        client.close()


@pytest.mark.parametrize("topic", [TOPIC, GONE])
def test_official_client_when_it_may_not_then_is_told_so(token_broker: InProcessBroker, topic: str) -> None:
    client = official(token_broker.service_url, token("nobody"))
    try:
        with pytest.raises(pulsar.AuthorizationError):
            client.create_producer(topic)
        with pytest.raises(pulsar.AuthorizationError):
            client.subscribe(topic, "s")
    finally:
        client.close()


def test_official_client_when_its_token_is_not_good_then_gives_up(token_broker: InProcessBroker) -> None:
    """The C++ family does not read why it is turned away: it tries again until its timeout."""
    client = official(token_broker.service_url, "abc", timeout_s=1)
    try:
        with pytest.raises(pulsar.PulsarException):
            client.create_producer(TOPIC)
    finally:
        client.close()


def test_official_client_when_its_token_ends_then_brings_a_new_one_over_the_same_connection(
    token_broker: InProcessBroker,
) -> None:
    handed_out: list[str] = []

    def supplier() -> str:
        handed_out.append(token("nprod") if handed_out else token("nprod", expires_in_seconds=5))
        return handed_out[-1]

    client = official(token_broker.service_url, supplier)
    try:
        producer = client.create_producer(TOPIC)
        asked, connections = len(handed_out), connections_made(token_broker)
        deadline = time.monotonic() + RENEWED_SECONDS_MAX
        while len(handed_out) == asked:
            assert time.monotonic() < deadline, "the broker asked for no new token"
            time.sleep(0.05)
        producer.send(b"still here")
        assert connections_made(token_broker) == connections
    finally:
        client.close()


def connections_made(broker: InProcessBroker) -> str:
    page = Player(broker.service_url, broker.web_url).call(None, "GET", "/metrics/")[1]
    return next(line for line in page.splitlines() if line.startswith("pulsar_connection_created_total_count"))


@pytest.mark.slow
def test_java_clients_with_tokens(token_broker: InProcessBroker, java_check: JavaCheck) -> None:
    secret = base64.b64encode(SECRET).decode()
    assert java_check("Access.java", token_broker.service_url, token_broker.web_url, secret) == "ok"


@pytest.mark.slow
def test_real_pulsar_answers_every_role_as_the_table_says(pulsar_with_tokens: PulsarWithTokens) -> None:
    player = Player(pulsar_with_tokens.service_url, pulsar_with_tokens.web_url)
    player.prepare()
    wrong = list(differing(player, of_real=True))
    assert not wrong, "\n".join(wrong)
