"""A broker whose files cannot grow any more: refuses, serves what it has, forgets nothing it acknowledged."""

from __future__ import annotations

from pathlib import Path

from interpulse.model.errors import ServerError
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from tests.integration.raw import RawClient, entry
from tests.integration.standalone_process import StandaloneProcess

TOPIC = "persistent://public/default/full"
PAYLOAD = b"x" * 10_000
FILE_BYTES_MAX = 2 * 1024 * 1024


def publish_until_refused(client: RawClient) -> tuple[int, int]:
    """How many entries were acknowledged, and the error that ended it."""
    acknowledged = 0
    while True:
        client.send(commands.send(1, acknowledged, entry(PAYLOAD, sequence_id=acknowledged)))
        command = client.receive().command
        if command.type != pb.BaseCommand.SEND_RECEIPT:
            break
        acknowledged += 1
    while command.type != pb.BaseCommand.SEND_ERROR:
        command = client.receive().command
    return acknowledged, command.send_error.error


def test_broker_when_its_disk_is_full_then_persistence_error_and_acknowledged_entries_stay(tmp_path: Path) -> None:
    with StandaloneProcess(tmp_path / "data", file_bytes_max=FILE_BYTES_MAX) as broker:
        with RawClient(broker.service_url) as client:
            client.ask(commands.producer(1, 1, TOPIC))
            acknowledged, error = publish_until_refused(client)
        assert error == ServerError.PersistenceError
        assert acknowledged > 100
        with RawClient(broker.service_url) as client:
            assert client.ask(commands.lookup(1, TOPIC)).request_id == 1
    with StandaloneProcess(tmp_path / "data") as broker, RawClient(broker.service_url) as client:
        client.ask(commands.subscribe(1, 1, TOPIC, "s", durable=False, initial_position=pb.CommandSubscribe.Earliest))
        client.send(commands.flow(1, acknowledged))
        for number in range(acknowledged):
            frame = client.receive()
            assert bytes(frame.payload or b"") == entry(PAYLOAD, sequence_id=number)
