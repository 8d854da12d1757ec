"""Index and time that a broker notes with messages: what clients see of them, on our broker and a real one."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from interpulse.client import Client
from interpulse.sync import Client as BlockingClient
from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.interop import go_program
from tests.interop.conftest import JavaCheck
from tests.interop.real_pulsar import Address, RealPulsar
from tests.support.official_client import admin

pytestmark = [pytest.mark.interop, pytest.mark.slow]

INTERCEPTORS = ",".join(
    f"org.apache.pulsar.common.intercept.{name}"
    for name in ("AppendIndexMetadataInterceptor", "AppendBrokerTimestampMetadataInterceptor")
)
NOTED = {"brokerEntryMetadataInterceptors": INTERCEPTORS, "exposingBrokerEntryMetadataToClientEnabled": "true"}
HIDDEN = {**NOTED, "exposingBrokerEntryMetadataToClientEnabled": "false"}
TOPIC = "persistent://public/default/noted"
PATH = TOPIC.replace("://", "/")
SIZES = [1, 2, 2500, 3, 4, 5]
INDEXES = [0, 1, 4, 5, 6, 7]
"""Each of the three chunks counts, and the message has the index of the last one."""

Restart = Callable[[Mapping[str, str]], Address]


@pytest.fixture(params=["ours", "real"])
def restart(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Restart]:
    """Start, or stop and start again, with these settings on the same data."""
    if request.param == "real":
        pulsar = RealPulsar(tmp_path / "real", settings=NOTED)

        def restart_real(settings: Mapping[str, str]) -> Address:
            pulsar.restart(settings)
            return pulsar.address

        yield restart_real
        pulsar.stop()
        return
    running = ExitStack()

    def restart_ours(settings: Mapping[str, str]) -> Address:
        running.close()
        broker = running.enter_context(InProcessBroker(tmp_path / "ours", settings))
        return Address(broker.service_url, broker.web_url)

    yield restart_ours
    running.close()


def test_broker_when_it_notes_index_and_time_then_clients_see_them_only_if_they_may(
    restart: Restart, java_check: JavaCheck, program: Path
) -> None:
    address = restart(NOTED)
    assert go_program.outcomes(program, *address, "noted") == {"index_and_time": ""}
    shown = [f"{size} {index} timed" for size, index in zip(SIZES, INDEXES, strict=True)]
    assert java_check("BrokerMetadata.java", address.service_url, TOPIC).splitlines() == shown
    assert read_with_ours(address) == INDEXES
    assert [header(address, entry, "index") for entry in range(1, 7)] == ["0", "1", "2", "3", "4", "7"]
    assert asyncio.run(broker_time_counts(address))

    address = restart(HIDDEN)
    hidden = [f"{size} - -" for size in SIZES]
    seen = java_check("BrokerMetadata.java", address.service_url, TOPIC).splitlines()
    assert seen == [*hidden, "4 - -", *hidden]
    assert set(read_with_ours(address)) == {None}
    assert [header(address, entry, "index") for entry in range(7, 14)] == ["8", "9", "10", "11", "12", "13", "16"]


def read_with_ours(address: Address) -> list[int | None]:
    """The indexes that our client shows; a message has both or none."""
    found = []
    with BlockingClient(address.service_url) as client, client.create_reader(TOPIC) as reader:
        while reader.has_message_available():
            message = reader.read_next(60_000)
            noted = message.broker_publish_time_ms
            assert (noted is None) == (message.index is None)
            assert noted is None or 0 <= time.time() * 1000 - noted < 300_000
            found.append(message.index)
    return found


def header(address: Address, number: int, name: str) -> str | None:
    """What the admin API says of an entry of the topic, counted from 1."""
    url = f"{address.web_url}/admin/v2/{PATH}/examinemessage?initialPosition=earliest&messagePosition={number}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        headers: Mapping[str, str] = answer.headers
        return headers.get(f"X-Pulsar-Broker-Entry-METADATA-{name}")


async def broker_time_counts(address: Address) -> bool:
    """Publish an entry whose producer's clock is decades late, and look for it by the time of the broker."""
    before = int(time.time() * 1000)
    metadata = pb.MessageMetadata(producer_name="late", sequence_id=0, publish_time=1).SerializeToString()
    async with Client(address.service_url) as client:
        sender = await client.create_entry_sender(TOPIC, "late")
        receipt = await (await sender.send(metadata, b"late", sequence_id=0))
        await sender.close()
    found = admin(address.web_url, "GET", f"{PATH}/messageid/{before}")
    return (found["ledgerId"], found["entryId"]) == tuple(receipt.position)
