"""A broker whose disk is full, through both front ends, and our own client meanwhile."""

from __future__ import annotations

import shutil
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from interpulse.model.errors import QuotaExceededException, ServerError
from interpulse.sync import Client
from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient

TOPIC = "persistent://public/default/full"


def status(url: str, method: str = "GET") -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60) as response:
            code: int = response.status
            return code
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code


def test_producer_of_ours_when_the_disk_is_full_then_fails_at_once_and_comes_back_by_itself(
    pulsar_broker: InProcessBroker,
) -> None:
    with Client(pulsar_broker.service_url) as client, client.create_producer(TOPIC) as producer:
        producer.send(b"first")
        full = pulsar_broker.faults.disk_full()
        for _ in range(2):
            with pytest.raises(QuotaExceededException, match="out of room"):
                producer.send(b"refused")
        assert status(f"{pulsar_broker.web_url}/readyz") == 503
        full.end()
        while True:
            try:
                producer.send(b"again")
                break
            except QuotaExceededException:
                continue
        assert status(f"{pulsar_broker.web_url}/readyz") == 200


def test_producer_when_the_disk_is_full_then_refused_with_the_code_that_fails_pending_messages(
    pulsar_broker: InProcessBroker,
) -> None:
    with Client(pulsar_broker.service_url) as client, client.create_producer(TOPIC) as producer:
        pulsar_broker.faults.disk_full()
        with pytest.raises(QuotaExceededException):
            producer.send(b"refused")
    with RawClient(pulsar_broker.service_url) as raw:
        refusal = raw.ask(commands.producer(1, 1, TOPIC))
        assert refusal.error == ServerError.ProducerBlockedQuotaExceededException
        assert "out of room" in refusal.message
        there = raw.ask(commands.producer(2, 2, "non-persistent://public/default/not-stored"))
        assert isinstance(there, pb.CommandProducerSuccess)


def test_disk_when_messages_are_published_then_measured_by_the_clock_not_by_the_message(
    pulsar_broker: InProcessBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = 0
    usage = shutil.disk_usage

    def count(path: Any) -> Any:
        nonlocal measured
        measured += Path(path).is_relative_to(tmp_path)  # not by other brokers of this process
        return usage(path)

    with Client(pulsar_broker.service_url) as client, client.create_producer(TOPIC) as producer:
        producer.send(b"first")
        monkeypatch.setattr(shutil, "disk_usage", count)
        begun = time.monotonic()
        for _ in range(1_000):
            producer.send(b"x")
        assert measured <= time.monotonic() - begun + 1, "once a second"


def test_compaction_when_the_disk_is_full_then_refused_for_it_would_fill_the_reserve(
    pulsar_broker: InProcessBroker,
) -> None:
    with Client(pulsar_broker.service_url) as client, client.create_producer(TOPIC) as producer:
        pulsar_broker.faults.disk_full()
        with pytest.raises(QuotaExceededException):
            producer.send(b"refused")
    assert status(f"{pulsar_broker.web_url}/admin/v2/persistent/public/default/full/compaction", "PUT") == 503
