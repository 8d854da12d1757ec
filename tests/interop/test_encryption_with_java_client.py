"""What one client encrypts, the other decrypts: ours and the Java client, both ways."""

import os
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from interpulse.client import DefaultCryptoKeyReader
from interpulse.sync import Client
from interpulse.testing.broker import InProcessBroker
from tests.support.encryption_keys import new_keys

pytestmark = [pytest.mark.interop, pytest.mark.slow]

FORMS: Mapping[str, tuple[int, dict[str, Any]]] = {
    "single": (100, {"batching_enabled": False}),
    "batch": (100, {"batch_delay_ms": 100}),
    "chunks": (6_000_000, {"batching_enabled": False, "chunking_enabled": True}),
}


def told(content: bytes) -> str:
    """Size and checksum."""
    return f"{len(content)} {zlib.crc32(content)}"


def test_java_client_when_messages_are_encrypted_then_both_sides_read_them(
    pulsar_broker: InProcessBroker, java_check: Callable[..., str], tmp_path: Path
) -> None:
    keys = new_keys(tmp_path, "orders")
    reader = DefaultCryptoKeyReader(keys.public, keys.private)
    sent: dict[str, list[str]] = defaultdict(list)
    with Client(pulsar_broker.service_url) as client:
        for form, (size, options) in FORMS.items():
            encryption = {"encryption_keys": ["orders"], "crypto_key_reader": reader, "compression": "lz4"}
            with client.create_producer(f"ours-{form}", **options, **encryption) as producer:
                for _ in range(3):
                    content = os.urandom(size)
                    sent[f"got {form}"].append(told(content))
                    producer.send_async(content)
        printed = java_check("Encrypted.java", pulsar_broker.service_url, str(keys.public), str(keys.private))
        said: dict[str, list[str]] = defaultdict(list)
        for line in printed.splitlines():
            name, separator, value = line.partition(": ")
            if separator and name.startswith(("got ", "sent ")):
                said[name].append(value)
        for form in FORMS:
            with client.create_reader(f"java-{form}", crypto_key_reader=reader) as received:
                messages = [received.read_next(60_000) for _ in range(3)]
            assert {message.was_encrypted for message in messages} == {True}
            assert [told(message.content or b"") for message in messages] == said[f"sent {form}"]
            assert said[f"got {form}"] == sent[f"got {form}"]
