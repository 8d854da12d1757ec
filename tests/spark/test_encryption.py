"""Encrypted messages by source and sink without a JVM, on our broker."""

from pathlib import Path

import pytest

from interpulse.client import Client, DefaultCryptoKeyReader
from interpulse.model.errors import CryptoError
from interpulse.testing import InProcessBroker
from tests.scenarios.client import Cluster
from tests.scenarios.sink import write
from tests.support.encryption_keys import new_keys
from tests.support.spark_source import read_batch

TOPIC = "persistent://public/default/secret"


async def test_rows_when_encrypted_then_are_read_with_the_key_alone(
    pulsar_broker: InProcessBroker, tmp_path: Path
) -> None:
    """Into a namespace that demands it, and by our client too."""
    keys = new_keys(tmp_path, "orders")
    pulsar_broker.admin.namespaces.set_policy("public/default", "encryption_required", True)
    cluster = Cluster(pulsar_broker.service_url, pulsar_broker.web_url)
    sealing = {"encryptionKeys": "orders", "encryptionPublicKey": str(keys.public), "compressionType": "zstd"}
    write(cluster, {"value": ["a", "b", "c"]}, topic=TOPIC, **sealing)
    async with Client(pulsar_broker.service_url) as client:
        opened = DefaultCryptoKeyReader(private_keys=keys.private)
        async with await client.create_reader(TOPIC, crypto_key_reader=opened) as reader:
            assert [(await reader.read_next(60_000)).content for _ in range(3)] == [b"a", b"b", b"c"]
    source = {"service.url": pulsar_broker.service_url, "topic": TOPIC, "includeColumns": "__encrypted"}
    rows = read_batch({**source, "encryptionPrivateKey": f'{{"orders": "{keys.private}"}}'})
    assert [(row["value"], row["__encrypted"]) for row in rows] == [(b"a", False), (b"b", False), (b"c", False)]
    (sealed,) = read_batch(source)
    assert sealed["__encrypted"]
    assert read_batch({**source, "cryptoFailureAction": "discard"}) == []
    with pytest.raises(CryptoError, match="it needs the private key of 'orders'"):
        read_batch({**source, "cryptoFailureAction": "fail"})
