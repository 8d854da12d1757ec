"""Entries through encryptor and decryptor: several keys, rotation, and what to do without a key."""

from collections.abc import Mapping

import pytest

from interpulse.client.encryption.entries import Decryptor, Encryptor
from interpulse.client.encryption.key_reader import DefaultCryptoKeyReader, EncryptionKeyInfo
from interpulse.model.errors import CryptoError
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import ParsedEntry
from tests.support.encryption_keys import KeyFiles
from tests.support.fake_clock import FakeClock

TOPIC = "persistent://public/default/t"


class CountingReader:
    """Gives the keys of files, tells how often, and can be broken."""

    def __init__(self, keys: KeyFiles) -> None:
        self.keys = keys
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self.broken = False

    def public_key(self, name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        return EncryptionKeyInfo(self._read(name, metadata), {"version": "7"})

    def private_key(self, name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        self._read(name, metadata)
        return EncryptionKeyInfo(self.keys.private.read_bytes())

    def _read(self, name: str, metadata: Mapping[str, str]) -> bytes:
        self.asked.append((name, metadata))
        if self.broken:
            raise LookupError("vault is sealed")
        return self.keys.public.read_bytes()


def sealed(encryptor: Encryptor, payload: bytes = b"secret") -> ParsedEntry:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    return ParsedEntry(metadata, b"", memoryview(encryptor.seal(metadata, payload)))


def test_entry_when_sealed_for_several_then_each_of_them_opens_it(orders: KeyFiles, returns: KeyFiles) -> None:
    public = DefaultCryptoKeyReader({"orders": orders.public, "returns": returns.public})
    encryptor = Encryptor(TOPIC, ["orders", "returns"], public, "fail")
    for keys, name in ((orders, "orders"), (returns, "returns")):
        entry = sealed(encryptor)
        assert [key.key for key in entry.metadata.encryption_keys] == ["orders", "returns"]
        assert bytes(entry.payload) != b"secret"
        assert Decryptor(TOPIC, DefaultCryptoKeyReader(private_keys={name: keys.private})).open(entry) is None
        assert (bytes(entry.payload), entry.was_encrypted, len(entry.metadata.encryption_keys)) == (b"secret", True, 0)


def test_data_key_when_four_hours_old_then_there_is_a_new_one(orders: KeyFiles) -> None:
    clock, reader = FakeClock(), CountingReader(orders)
    encryptor = Encryptor(TOPIC, ["k"], reader, "fail", clock)
    decryptor = Decryptor(TOPIC, reader, clock)
    values = []
    for clock.now in (0.0, 4 * 3600 - 1.0, 4 * 3600.0, 4 * 3600 + 1.0):
        entry = sealed(encryptor)
        values.append(entry.metadata.encryption_keys[0].value)
        assert decryptor.open(entry) is None
    assert values[0] == values[1] != values[2] == values[3]
    assert reader.asked == [("k", {}), ("k", {"version": "7"})] * 2, "each side once for each data key"


def test_parameters_when_one_data_key_is_used_then_never_repeat(orders: KeyFiles) -> None:
    encryptor = Encryptor(TOPIC, ["k"], CountingReader(orders), "fail")
    assert len({sealed(encryptor).metadata.encryption_param for _ in range(1000)}) == 1000


def test_data_key_when_it_cannot_be_renewed_then_the_old_one_is_used_on(
    orders: KeyFiles, caplog: pytest.LogCaptureFixture
) -> None:
    clock, reader = FakeClock(), CountingReader(orders)
    encryptor = Encryptor(TOPIC, ["k"], reader, "fail", clock)
    first = sealed(encryptor)
    clock.now, reader.broken = 5 * 3600.0, True
    assert sealed(encryptor).metadata.encryption_keys[0].value == first.metadata.encryption_keys[0].value
    assert "data key not renewed" in caplog.text
    clock.now, reader.broken = 5 * 3600.0 + 61, False
    assert sealed(encryptor).metadata.encryption_keys[0].value != first.metadata.encryption_keys[0].value


def test_entry_when_it_cannot_be_sealed_then_fails_or_goes_as_it_is(
    orders: KeyFiles, caplog: pytest.LogCaptureFixture
) -> None:
    reader = CountingReader(orders)
    reader.broken = True
    strict, lenient = (Encryptor(TOPIC, ["k"], reader, action, FakeClock()) for action in ("fail", "send"))
    said = rf"messages for {TOPIC} cannot be encrypted with the public key 'k': vault is sealed; fix the key$"
    for attempt in (strict.open, strict.open, lambda: sealed(strict)):
        with pytest.raises(CryptoError, match=said):
            attempt()
    lenient.open()
    entry = sealed(lenient)
    assert (bytes(entry.payload), len(entry.metadata.encryption_keys)) == (b"secret", 0)
    assert "messages are sent without encryption" in caplog.text


def test_entry_when_it_cannot_be_opened_then_is_left_as_it_is_with_the_reason(
    orders: KeyFiles, returns: KeyFiles
) -> None:
    encryptor = Encryptor(TOPIC, ["k"], CountingReader(orders), "fail")
    broken = CountingReader(orders)
    broken.broken = True
    for reader, said in (
        (None, "it needs the private key of 'k', from a crypto_key_reader"),
        (DefaultCryptoKeyReader(), "with the key 'k': there is no private key 'k': name its file in private_keys"),
        (DefaultCryptoKeyReader(private_keys=returns.private), "it does not belong to the public key that the message"),
        (broken, "with the key 'k': LookupError: vault is sealed"),
    ):
        entry = sealed(encryptor)
        before = bytes(entry.payload)
        problem = Decryptor(TOPIC, reader).open(entry)
        assert f"a message of {TOPIC} cannot be decrypted" in str(problem)
        assert said in str(problem)
        assert (bytes(entry.payload), entry.was_encrypted, len(entry.metadata.encryption_keys)) == (before, False, 1)


def test_entry_when_it_is_plain_then_nobody_asks_for_keys(orders: KeyFiles) -> None:
    reader = CountingReader(orders)
    entry = ParsedEntry(pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1), b"", memoryview(b"open"))
    assert Decryptor(TOPIC, reader).open(entry) is None
    assert (bytes(entry.payload), entry.was_encrypted, reader.asked) == (b"open", False, [])
