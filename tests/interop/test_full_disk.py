"""Pulsar's clients while the disk of our broker is full, and after."""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from typing import Any

import pulsar
import pytest

from interpulse.testing import InProcessBroker
from tests.interop.conftest import CHECKS
from tests.support.official_client import connected
from tools.engines.java import LOGGING, java_command

pytestmark = pytest.mark.interop


def is_ready(broker: InProcessBroker) -> bool:
    try:
        with urllib.request.urlopen(f"{broker.web_url}/readyz", timeout=60):
            return True
    except urllib.error.HTTPError as refusal:
        with refusal:
            return False


def test_official_client_when_the_disk_is_full_then_fails_at_once_and_goes_on_with_the_same_producer(
    pulsar_broker: InProcessBroker,
) -> None:
    with connected(pulsar_broker.service_url) as client:
        producer = client.create_producer("full")
        consumer = client.subscribe("full", "s")
        producer.send(b"before")
        full = pulsar_broker.faults.disk_full()
        for _ in range(2):
            with pytest.raises(pulsar.ProducerBlockedQuotaExceededException):
                producer.send(b"meanwhile")
        assert not is_ready(pulsar_broker)
        full.end()
        while True:
            try:
                producer.send(b"after")
                break
            except pulsar.ProducerBlockedQuotaExceededException:
                continue
        assert is_ready(pulsar_broker)
        received: list[Any] = []
        while not received or received[-1] != b"after":
            message = consumer.receive(60_000)
            consumer.acknowledge(message)
            received.append(message.data())
        assert set(received) == {b"before", b"after"}


@pytest.mark.slow
def test_java_client_when_the_disk_is_full_then_fails_at_once_and_goes_on_with_the_same_producer(
    pulsar_broker: InProcessBroker,
) -> None:
    quiet = f"-Dlog4j2.configurationFile={LOGGING}"
    line = java_command(quiet, str(CHECKS / "Publishing.java"), pulsar_broker.service_url)
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
        try:
            assert program.stdout is not None
            said = iter(program.stdout.readline, "")
            assert next(said) == "stored\n"
            full = pulsar_broker.faults.disk_full()
            told = [next(each for each in said if each != "stored\n") for _ in range(2)]
            assert told == ["ProducerBlockedQuotaExceededException at once\n"] * 2
            full.end()
            assert "stored\n" in said
            assert program.wait(60) == 0
        finally:
            program.kill()
