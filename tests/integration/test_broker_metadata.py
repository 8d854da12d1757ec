"""Index and time that the broker notes with messages, from its settings to what clients and the admin API show."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from interpulse.client import AdminClient
from interpulse.model.broker_entry_metadata import INTERCEPTOR_CLASSES
from interpulse.serving.settings import ConfigError
from interpulse.sync import Client
from interpulse.testing import InProcessBroker

TOPIC = "persistent://public/default/noted"
NOTED = {"brokerEntryMetadataInterceptors": ",".join(INTERCEPTOR_CLASSES)}
SHOWN = {**NOTED, "exposingBrokerEntryMetadataToClientEnabled": "true"}


def publish_and_read(broker: InProcessBroker, *contents: bytes) -> list[tuple[bytes | None, int | None, bool]]:
    """Every message of the topic after these were published: content, index, whether the broker noted when it came."""
    found = []
    with Client(broker.service_url) as client:
        with client.create_producer(TOPIC) as producer:
            for content in contents:
                producer.send_async(content)
            producer.flush()
        with client.create_reader(TOPIC) as reader:
            while reader.has_message_available():
                message = reader.read_next(60_000)
                noted = message.broker_publish_time_ms
                assert noted is None or 0 <= time.time() * 1000 - noted < 60_000
                found.append((message.content, message.index, noted is not None))
    return found


async def index_over_rest(broker: InProcessBroker) -> int | None:
    async with AdminClient(broker.web_url) as admin:
        return (await admin.topics.examine(TOPIC, "latest", 1))[-1].index


async def test_index_and_time_when_settings_change_between_starts_then_shown_as_they_say(tmp_path: Path) -> None:
    """A batch of two before anything is noted, then one, one that is noted but not shown, one that is not noted."""
    with InProcessBroker(tmp_path) as broker:
        plain = publish_and_read(broker, b"a", b"b")
        assert plain == [(b"a", None, False), (b"b", None, False)]
        assert await index_over_rest(broker) is None
    with InProcessBroker(tmp_path, SHOWN) as broker:
        assert publish_and_read(broker, b"c", b"d") == [*plain, (b"c", 0, True), (b"d", 1, True)]
        assert await index_over_rest(broker) == 1
    with InProcessBroker(tmp_path, NOTED) as broker:
        assert publish_and_read(broker, b"e") == [(each, None, False) for each in (b"a", b"b", b"c", b"d", b"e")]
        assert await index_over_rest(broker) == 2
    with InProcessBroker(tmp_path) as broker:
        assert {index for _, index, _ in publish_and_read(broker, b"f")} == {None}
    with InProcessBroker(tmp_path, SHOWN) as broker:
        seen = publish_and_read(broker, b"g")
        assert [index for _, index, _ in seen] == [None, None, 0, 1, 2, None, 3]


def test_broker_when_an_interceptor_is_unknown_then_not_started(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"com\.example\.Mine: must be some of org\.apache"):
        InProcessBroker(tmp_path, {"brokerEntryMetadataInterceptors": "com.example.Mine"})
