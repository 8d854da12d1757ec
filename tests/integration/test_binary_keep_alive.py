"""Silent clients in real time: pinged, then dropped; those who answer stay."""

from __future__ import annotations

import time
from typing import Any

import pytest

from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient

pytestmark = [pytest.mark.slow, pytest.mark.pulsar_settings(keepAliveIntervalSeconds="1")]


def test_client_when_it_never_greets_then_dropped_after_one_interval(pulsar_broker: InProcessBroker) -> None:
    with RawClient(pulsar_broker.service_url, greet=False) as client:
        started = time.monotonic()
        assert client.closed_by_broker()
        assert time.monotonic() - started > 0.5


def test_client_when_silent_then_pinged_and_dropped(pulsar_broker: InProcessBroker) -> None:
    with RawClient(pulsar_broker.service_url) as client:
        assert client.receive().command.type == pb.BaseCommand.PING
        assert client.closed_by_broker()


def test_client_when_it_answers_then_stays(pulsar_broker: InProcessBroker) -> None:
    with RawClient(pulsar_broker.service_url) as client:
        for _ in range(3):
            assert client.receive().command.type == pb.BaseCommand.PING
            client.send(commands.PONG)


def test_name_when_its_holder_is_silent_then_given_to_the_next(pulsar_broker: InProcessBroker) -> None:
    topic = "persistent://public/default/t"
    with RawClient(pulsar_broker.service_url) as holder, RawClient(pulsar_broker.service_url) as other:
        holder.ask(commands.producer(1, 1, topic, name="only"))
        other.send(commands.producer(1, 1, topic, name="only"))
        answers: list[Any] = []
        while not answers or answers[-1].type == pb.BaseCommand.PING:
            answers.append(other.receive().command)
            if answers[-1].type == pb.BaseCommand.PING:
                other.send(commands.PONG)
        assert answers[-1].producer_success.producer_name == "only"
