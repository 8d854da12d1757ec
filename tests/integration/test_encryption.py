"""End-to-end encryption by our client and command line, against our broker."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interpulse.client import Client, DeadLetterPolicy, DefaultCryptoKeyReader, Entry, EntryReader
from interpulse.client.encryption.entries import Encryptor
from interpulse.model.errors import CryptoError, PulsarError
from interpulse.model.ids import EARLIEST, Position
from interpulse.testing.broker import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry
from tests.support.cli_cluster import CliCluster
from tests.support.encryption_keys import KeyFiles, new_keys

TOPIC = "persistent://public/default/secret"

WITHOUT = """
import sys
from interpulse.sync import Client
with Client(sys.argv[1]) as client, client.subscribe("t", "s") as consumer, client.create_producer("t") as producer:
    producer.send(b"x")
    consumer.receive(60_000)
print(sorted(name for name in sys.modules if name.startswith("cryptography")))
"""


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    return new_keys(tmp_path_factory.mktemp("keys"), "orders")


async def taken(reader: EntryReader, count: int) -> list[Entry]:
    """The next entries."""
    entries: list[Entry] = []
    while len(entries) < count:
        entries += await reader.read_batch()
    return entries


def sending(keys: KeyFiles) -> dict:
    return {"encryption_keys": ["orders"], "crypto_key_reader": DefaultCryptoKeyReader(keys.public)}


def test_client_when_nothing_is_encrypted_then_cryptography_is_not_loaded(pulsar_broker: InProcessBroker) -> None:
    command = [sys.executable, "-c", WITHOUT, pulsar_broker.service_url]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


async def test_entries_when_encrypted_then_the_broker_keeps_and_gives_the_bytes_it_got(
    pulsar_broker: InProcessBroker, keys: KeyFiles
) -> None:
    """Also after a restart, and as replication reads and writes them: entry by entry."""
    encryptor = Encryptor(TOPIC, ["orders"], DefaultCryptoKeyReader(keys.public), "fail")
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1)
    payload = encryptor.seal(metadata, b"secret")
    stored = build_entry(metadata.SerializeToString(), payload)
    copy = TOPIC + "-copy"
    async with Client(pulsar_broker.service_url) as client:
        async with await client.create_producer(TOPIC, **sending(keys)) as producer:
            await producer.send(b"first")
        async with await client.create_entry_sender(TOPIC, "p") as sender:
            await (await sender.send_entry(stored, sequence_id=0))
    pulsar_broker.restart()
    async with Client(pulsar_broker.service_url) as client:
        async with await client.create_entry_reader(TOPIC, after=EARLIEST) as reader:
            entries = await taken(reader, 2)
        assert bytes(entries[1].parsed.payload) == payload
        async with await client.create_entry_sender(copy, "q") as sender:
            for number, entry in enumerate(entries):
                await (await sender.send_entry(entry.raw, sequence_id=number))
        options = {"crypto_key_reader": DefaultCryptoKeyReader(private_keys=keys.private)}
        async with await client.create_reader(copy, **options) as copied:  # type: ignore[arg-type]
            assert [(await copied.read_next(60_000)).content for _ in range(2)] == [b"first", b"secret"]
        view = await client.create_table_view(copy, **options)
        assert len(view) == 0


async def test_namespace_when_it_demands_encryption_then_plain_producers_are_refused(
    pulsar_broker: InProcessBroker, keys: KeyFiles
) -> None:
    pulsar_broker.admin.namespaces.set_policy("public/default", "encryption_required", True)
    async with Client(pulsar_broker.service_url, operation_timeout_ms=1000) as client:  # it tries until then
        with pytest.raises(PulsarError, match="Encryption is required"):
            await client.create_producer(TOPIC)
        producer = await client.create_producer(TOPIC, **sending(keys))
        assert await producer.send(b"secret")


async def test_producer_when_its_key_is_bad_then_is_not_opened(pulsar_broker: InProcessBroker, tmp_path: Path) -> None:
    missing = DefaultCryptoKeyReader(tmp_path / "gone.pem")
    async with Client(pulsar_broker.service_url) as client:
        with pytest.raises(
            CryptoError, match=r"messages for .*secret cannot be encrypted with the public key 'k': key"
        ):
            await client.create_producer(TOPIC, encryption_keys=["k"], crypto_key_reader=missing)
        lenient = await client.create_producer(
            TOPIC, encryption_keys=["k"], crypto_key_reader=missing, crypto_failure_action="send"
        )
        consumer = await client.subscribe(TOPIC, "s", initial_position="earliest")
        await lenient.send(b"open")
        message = await consumer.receive(60_000)
        assert (message.content, message.was_encrypted) == (b"open", False)


async def test_chunks_when_one_was_changed_on_the_way_then_the_message_is_refused(
    pulsar_broker: InProcessBroker, keys: KeyFiles
) -> None:
    copy = TOPIC + "-changed"
    async with Client(pulsar_broker.service_url) as client:
        async with await client.create_producer(
            TOPIC, batching_enabled=False, chunking_enabled=True, **sending(keys)
        ) as producer:
            sent = await producer.send(os.urandom(11_000_000))
        assert sent.first_chunk is not None
        async with await client.create_entry_reader(TOPIC, after=Position(sent.first_chunk.ledger, -1)) as reader:
            chunks = await taken(reader, 3)
        async with await client.create_entry_sender(copy, "q") as sender:
            for number, chunk in enumerate(chunks):
                payload = bytearray(chunk.parsed.payload)
                payload[7] ^= number == 1
                changed = build_entry(chunk.parsed.metadata_bytes, bytes(payload))
                await (await sender.send_entry(changed, sequence_id=number, is_chunk=True))
        options = {"crypto_key_reader": DefaultCryptoKeyReader(private_keys=keys.private)}
        async with await client.create_reader(copy, **options) as copied:  # type: ignore[arg-type]
            with pytest.raises(
                CryptoError, match="with the key 'orders': its bytes were modified, or encrypted with another key"
            ):
                await copied.read_next(60_000)


async def test_dead_letters_when_messages_came_encrypted_then_are_encrypted_too_or_not_made(
    pulsar_broker: InProcessBroker, keys: KeyFiles
) -> None:
    both = DefaultCryptoKeyReader(keys.public, keys.private)
    options = {"subscription_type": "shared", "crypto_key_reader": both, "retry_enabled": True}
    async with Client(pulsar_broker.service_url) as client:
        open_policy = await client.subscribe(TOPIC, "open", dead_letter_policy=DeadLetterPolicy(1), **options)
        sealed_policy = DeadLetterPolicy(1, encryption_keys=("orders",))
        sealed = await client.subscribe(TOPIC, "sealed", dead_letter_policy=sealed_policy, **options)
        producer = await client.create_producer(TOPIC, **sending(keys))
        await producer.send(b"secret")
        with pytest.raises(PulsarError, match="came encrypted and is not copied unencrypted as a letter"):
            await open_policy.reconsume_later(await open_policy.receive(60_000), 0)
        await sealed.reconsume_later(await sealed.receive(60_000), 0)
        again = await sealed.receive(60_000)
        assert (again.content, again.was_encrypted) == (b"secret", True)


def test_command_line_when_given_keys_then_encrypts_and_decrypts(
    pulsar_broker: InProcessBroker, keys: KeyFiles
) -> None:
    cluster = CliCluster(pulsar_broker.web_url, pulsar_broker.service_url)
    cluster.produce("secret", "-m", "hello", "-ekn", "orders", "-ekv", f"file://{keys.public}")
    for command in ("-ekv", "--encryption-key-value"):
        rows = cluster.consume("secret", "-s", command.strip("-"), "-p", "earliest", command, str(keys.private))
        assert [row.rpartition(":")[2] for row in rows] == ["hello"]
