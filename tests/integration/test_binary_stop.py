"""A broker that stops answers what it took, says goodbye, and only then hangs up."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from interpulse.model.errors import ServerError
from interpulse.testing import InProcessBroker
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support.raw_client import RawClient, entry

TOPIC = "persistent://public/default/stop"


def test_stop_when_clients_are_connected_then_receipts_and_closes_come_before_the_end(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path) as broker, RawClient(broker.service_url) as client:
        client.ask(commands.producer(1, 1, TOPIC))
        client.ask(commands.subscribe(2, 1, TOPIC, "s"))
        client.send(*(commands.send(1, number, entry()) for number in range(500)))
        assert client.receive().command.send_receipt.sequence_id == 0
        started = time.monotonic()
        broker.stop()
        assert time.monotonic() - started < 5
        kinds = []
        with contextlib.suppress(EOFError, ConnectionResetError):
            while True:
                kinds.append(client.receive().command.type)
        receipts = kinds.count(pb.BaseCommand.SEND_RECEIPT)
        assert {pb.BaseCommand.CLOSE_PRODUCER, pb.BaseCommand.CLOSE_CONSUMER} <= set(kinds)
    with InProcessBroker(tmp_path) as broker, RawClient(broker.service_url) as client:
        client.ask(commands.subscribe(1, 1, TOPIC, "s"))
        last = client.ask(commands.get_last_message_id(2, 1)).last_message_id
        assert last.entryId >= receipts  # entry 0 had its receipt before


def test_stop_when_a_client_asks_meanwhile_then_service_not_ready(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path) as broker, RawClient(broker.service_url) as client:

        async def close_topics(app: object) -> None:
            await app.registry.close()  # type: ignore[attr-defined]

        broker.call(close_topics)
        refused = client.ask(commands.producer(1, 1, TOPIC))
        assert (refused.request_id, refused.error) == (1, ServerError.ServiceNotReady)
