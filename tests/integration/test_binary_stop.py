"""A broker that stops answers what it took, closes producers and consumers, and then its connections."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from interpulse.model.errors import ServerError
from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient, entry

TOPIC = "persistent://public/default/stop"


def test_stop_when_clients_are_connected_then_receipts_and_closes_come_before_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.broker.app._STOP_SECONDS_MAX", 60)
    with InProcessBroker(tmp_path) as broker, RawClient(broker.service_url) as client:
        client.ask(commands.producer(1, 1, TOPIC))
        client.ask(commands.subscribe(2, 1, TOPIC, "s"))
        client.send(*(commands.send(1, number, entry()) for number in range(500)))
        assert client.receive().command.send_receipt.sequence_id == 0
        broker.stop()
        assert "stop took too long" not in caplog.text
        answers = []
        with contextlib.suppress(EOFError, ConnectionResetError):
            while True:
                answers.append(client.receive().command)
    kinds = [each.type for each in answers]
    assert (kinds.count(pb.BaseCommand.CLOSE_PRODUCER), kinds.count(pb.BaseCommand.CLOSE_CONSUMER)) == (1, 1)
    receipts = [each.send_receipt.sequence_id for each in answers if each.type == pb.BaseCommand.SEND_RECEIPT]
    assert receipts == list(range(1, len(receipts) + 1))
    with InProcessBroker(tmp_path) as broker, RawClient(broker.service_url) as client:
        client.ask(commands.subscribe(1, 1, TOPIC, "s"))
        last = client.ask(commands.get_last_message_id(2, 1)).last_message_id
        assert last.entryId == len(receipts), "what was taken has its receipt, and entry 0 had it before"


def test_stop_when_a_client_asks_meanwhile_then_service_not_ready(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path) as broker, RawClient(broker.service_url) as client:

        async def close_topics(app: object) -> None:
            await app.registry.close()  # type: ignore[attr-defined]

        broker.call(close_topics)
        refused = client.ask(commands.producer(1, 1, TOPIC))
        assert (refused.request_id, refused.error) == (1, ServerError.ServiceNotReady)
