"""The codecs, byte forms included, and that a payload never grows beyond what it announced."""

import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.errors import NotSupported
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.compression import compress, decompress
from interpulse.wire.errors import RemoteProtocolError

CODECS = [pb.NONE, pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY]
PACKERS = CODECS[1:]


@pytest.mark.parametrize("codec", CODECS)
@given(payload=st.binary(max_size=300))
def test_payload_when_compressed_and_back_then_is_the_same(codec: pb.CompressionType.ValueType, payload: bytes) -> None:
    assert decompress(codec, memoryview(compress(codec, payload)), len(payload)) == payload


@pytest.mark.parametrize(
    ("codec", "beginning"), [(pb.ZLIB, "789c"), (pb.ZSTD, "28b52ffd"), (pb.SNAPPY, "8827"), (pb.LZ4, "5f68656c6c6f")]
)
def test_compressed_form_is_the_one_of_other_clients(codec: pb.CompressionType.ValueType, beginning: str) -> None:
    assert compress(codec, b"hello" * 1000).hex().startswith(beginning)


@pytest.mark.parametrize("codec", PACKERS)
@pytest.mark.parametrize("announced", [0, 1, 4999, 5001, 100_000])
def test_payload_when_its_size_was_announced_wrongly_then_is_refused(
    codec: pb.CompressionType.ValueType, announced: int
) -> None:
    with pytest.raises(RemoteProtocolError):
        decompress(codec, compress(codec, b"hello" * 1000), announced)


@pytest.mark.parametrize("codec", PACKERS)
def test_garbage_when_decompressed_then_is_refused(codec: pb.CompressionType.ValueType) -> None:
    with pytest.raises(RemoteProtocolError):
        decompress(codec, b"\xff\x00garbage", 100)


def test_codec_when_not_installed_then_its_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(NotSupported, match="LZ4, ZSTD or SNAPPY need package cramjam"):
        compress(pb.LZ4, b"hello")
    with pytest.raises(NotSupported, match="install it on every machine"):
        decompress(pb.ZSTD, b"garbage", 100)
    assert decompress(pb.ZLIB, compress(pb.ZLIB, b"hello"), 5) == b"hello"


def test_bomb_when_decompressed_then_stops_at_the_announced_size() -> None:
    with pytest.raises(RemoteProtocolError, match="payload of 1001 bytes"):
        decompress(pb.ZLIB, zlib.compress(bytes(50_000_000)), 1000)
