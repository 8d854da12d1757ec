"""Encrypted entries as rows, written by the sink and read by the source."""

from pathlib import Path
from typing import Any

import pytest

from interpulse.client import DefaultCryptoKeyReader
from interpulse.client.encryption.encryptor import Encryptor
from interpulse.model.errors import CryptoError
from interpulse.model.ids import Position
from interpulse.spark.rows.columns import Layout, read_schema
from interpulse.spark.rows.decryption import Decryption
from interpulse.spark.rows.row_builder import RowBuilder
from interpulse.spark.writing.sink_rows import OutgoingMessage, build_messages
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import parse_entry
from tests.support.encryption_keys import KeyFiles, new_keys

TOPIC = "persistent://public/default/t"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    return new_keys(tmp_path_factory.mktemp("keys"), "orders")


class Entry:
    def __init__(self, raw: bytes) -> None:
        self.position, self.raw, self.parsed = Position(1, 2), raw, parse_entry(raw)


def written(keys: KeyFiles, *values: bytes, batched: bool, codec: int = pb.NONE) -> Entry:
    encryptor = Encryptor(TOPIC, ["orders"], DefaultCryptoKeyReader(keys.public), "fail")
    fields: dict[str, Any] = dict.fromkeys(OutgoingMessage._fields)
    messages = [
        OutgoingMessage(**{**fields, "topic": TOPIC, "value": value, "properties": {}, "replicate_to": ()})
        for value in values
    ]
    ids = range(len(messages))
    options: dict[str, Any] = {"producer_name": "p", "publish_time_ms": 1, "batched": batched, "codec": codec}
    return Entry(build_messages(messages, ids=ids, encryptor=encryptor, **options))


def rows(entry: Entry, decryption: Decryption | None) -> list[dict]:
    layout = Layout("message")
    builder = RowBuilder(read_schema(layout, ["value", "__encrypted"]), layout, None, None, decryption)
    builder.add(TOPIC, [entry])
    return builder.take().to_pylist()


@pytest.mark.parametrize("codec", [pb.NONE, pb.ZSTD])
@pytest.mark.parametrize("values", [(b"a",), (b"a", b"b"), tuple(b"%d" % number for number in range(100))])
def test_entry_when_there_is_its_key_then_has_plain_rows(keys: KeyFiles, values: tuple[bytes, ...], codec: int) -> None:
    decryption = Decryption(DefaultCryptoKeyReader(private_keys=keys.private), None)
    found = rows(written(keys, *values, batched=len(values) > 1, codec=codec), decryption)
    assert [(row["value"], row["__encrypted"]) for row in found] == [(value, False) for value in values]


def test_entry_when_there_is_no_key_then_its_rows_are_what_the_option_says(keys: KeyFiles, tmp_path: Path) -> None:
    wrong = DefaultCryptoKeyReader(private_keys=new_keys(tmp_path, "other").private)
    for decryption in (None, Decryption(None, None), Decryption(None, "consume"), Decryption(wrong, "consume")):
        (row,) = rows(written(keys, b"a", b"b", batched=True), decryption)
        assert row["__encrypted"]
        assert row["value"] != b"a"
    assert rows(written(keys, b"a", batched=False), Decryption(None, "discard")) == []
    for decryption in (Decryption(None, "fail"), Decryption(wrong, None)):
        with pytest.raises(CryptoError, match=r"entry 1:2: a message of .*'orders'.* give encryptionPrivateKey"):
            rows(written(keys, b"a", batched=False), decryption)
