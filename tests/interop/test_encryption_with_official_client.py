"""What one client encrypts, the other decrypts: ours and the official one, both ways, through our broker."""

import os

import pulsar
import pytest

from interpulse.client import DefaultCryptoKeyReader
from interpulse.model.errors import CryptoError
from interpulse.sync import Client
from interpulse.testing.broker import InProcessBroker
from tests.support.encryption_keys import KeyFiles, new_keys
from tests.support.official_client import connected

pytestmark = pytest.mark.interop
TOPIC = "persistent://public/default/secret"
CODECS = {"none": pulsar.CompressionType.NONE, "zstd": pulsar.CompressionType.ZSTD}
FORMS = {
    "single": {"batching_enabled": False},
    "batch": {},
    "chunks": {"batching_enabled": False, "chunking_enabled": True},
}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    return new_keys(tmp_path_factory.mktemp("keys"), "orders")


@pytest.fixture
def official_reader(keys: KeyFiles) -> pulsar.CryptoKeyReader:
    return pulsar.CryptoKeyReader(str(keys.public), str(keys.private))


def contents(form: str) -> list[bytes]:
    return [os.urandom(11_000_000)] if form == "chunks" else [b"%d" % number for number in range(10)] + [b""]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("form", FORMS)
def test_messages_of_ours_when_encrypted_then_the_official_client_reads_them(
    pulsar_broker: InProcessBroker,
    keys: KeyFiles,
    official_reader: object,
    form: str,
    codec: str,
) -> None:
    reader = DefaultCryptoKeyReader(keys.public)
    with connected(pulsar_broker.service_url) as official, Client(pulsar_broker.service_url) as ours:
        consumer = official.subscribe(TOPIC, "s", crypto_key_reader=official_reader)
        options = {**FORMS[form], "compression": codec, "encryption_keys": ["orders"], "crypto_key_reader": reader}
        with ours.create_producer(TOPIC, **options) as producer:
            sent = contents(form)
            for content in sent:
                producer.send_async(content, key="k", properties={"a": "b"})
            producer.flush()
        for content in sent:
            message = consumer.receive(60_000)
            assert message.data() == content
            assert (message.partition_key(), message.properties()) == ("k", {"a": "b"})


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("form", FORMS)
def test_messages_of_the_official_client_when_encrypted_then_ours_reads_them(
    pulsar_broker: InProcessBroker,
    keys: KeyFiles,
    official_reader: object,
    form: str,
    codec: str,
) -> None:
    reader = DefaultCryptoKeyReader(private_keys=keys.private)
    with (
        connected(pulsar_broker.service_url) as official,
        Client(pulsar_broker.service_url) as ours,
        ours.subscribe(TOPIC, "s", crypto_key_reader=reader) as consumer,
    ):
        producer = official.create_producer(
            TOPIC,
            batching_enabled=form == "batch",
            chunking_enabled=form == "chunks",
            batching_max_publish_delay_ms=100,
            compression_type=CODECS[codec],
            encryption_key="orders",
            crypto_key_reader=official_reader,
        )
        sent = contents(form)
        for content in sent:
            producer.send_async(content, lambda result, message_id: None, partition_key="k", properties={"a": "b"})
        producer.flush()
        for content in sent:
            message = consumer.receive(60_000)
            assert message.content == content
            assert (message.key, message.properties) == ("k", {"a": "b"})
            assert (message.is_encrypted, message.was_encrypted) == (False, True)
            assert (message.batch_size > 1) == (form == "batch")


def test_consumers_without_the_key_then_do_what_they_were_told(pulsar_broker: InProcessBroker, keys: KeyFiles) -> None:
    with (
        Client(pulsar_broker.service_url) as ours,
        ours.create_producer(
            TOPIC, encryption_keys=["orders"], crypto_key_reader=DefaultCryptoKeyReader(keys.public)
        ) as producer,
        ours.create_producer(TOPIC) as plain,
    ):
        consumers = {
            action: ours.subscribe(TOPIC, action, crypto_failure_action=action)
            for action in ("fail", "discard", "consume")
        }
        producer.send("secret")
        plain.send("open")
        with pytest.raises(CryptoError, match=r"it needs the private key of 'orders', from a crypto_key_reader"):
            consumers["fail"].receive(60_000)
        assert consumers["discard"].receive(60_000).content == b"open"
        sealed = consumers["consume"].receive(60_000)
        assert (sealed.is_encrypted, sealed.content == b"secret") == (True, False)
