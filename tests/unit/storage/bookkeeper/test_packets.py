"""Packets against entries that real brokers wrote."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.storage.bookkeeper.errors import WrongDigest
from interpulse.storage.bookkeeper.packets import PACKET_OVERHEAD_MAX, Digest, DigestType, Packet
from tests.unit.storage.bookkeeper.recorded import COMPUTED, RECORDED

I64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize("entry", RECORDED["entries"], ids=lambda each: f"{each['ledger']}:{each['entry']}")
def test_packet_when_a_real_broker_wrote_it_then_ours_is_the_same(entry: dict[str, Any]) -> None:
    payload = bytes.fromhex(entry["payload"])
    ledger, number, confirmed, length = entry["header"]
    digest = Digest(DigestType[entry["digest_type"]])
    ours = digest.seal(ledger, number, confirmed, length, payload)
    assert ours[32 : -len(payload)].hex() == entry["digest"]
    assert digest.open(ours, ledger, number) == Packet(ledger, number, confirmed, length, payload)


@pytest.mark.parametrize("kind", list(DigestType))
@pytest.mark.parametrize("count", [1, 3])
def test_fronts_when_made_for_a_run_then_are_those_of_packets_sealed_alone(kind: DigestType, count: int) -> None:
    digest = Digest(kind, b"secret")
    payloads = [b"x" * size for size in range(count)]
    lengths = [100 + size for size in range(count)]
    fronts = digest.fronts(7, 5, 4, lengths, payloads)
    run = [front + payload for front, payload in zip(fronts, payloads, strict=True)]
    assert run == [digest.seal(7, 5 + each, 4, lengths[each], payloads[each]) for each in range(count)]


def test_master_key_when_the_password_is_empty_then_as_recorded() -> None:
    assert Digest(DigestType.CRC32C).master_key == COMPUTED["master key of empty password"]


@given(
    kind=st.sampled_from(DigestType), numbers=st.tuples(I64, I64, I64, I64), payload=st.binary(), password=st.binary()
)
def test_packet_when_opened_then_what_was_sealed(
    kind: DigestType, numbers: tuple[int, int, int, int], payload: bytes, password: bytes
) -> None:
    raw = Digest(kind, password).seal(*numbers, payload)
    assert len(raw) <= PACKET_OVERHEAD_MAX + len(payload)
    assert Digest(kind, password).open(raw, numbers[0], numbers[1]) == Packet(*numbers, payload)


@given(
    kind=st.sampled_from([DigestType.CRC32, DigestType.CRC32C, DigestType.HMAC]),
    at=st.integers(0),
    bit=st.integers(0, 7),
)
def test_packet_when_a_bit_is_flipped_then_noticed(kind: DigestType, at: int, bit: int) -> None:
    raw = bytearray(Digest(kind).seal(1, 2, 1, 30, b"a payload"))
    raw[at % len(raw)] ^= 1 << bit
    with pytest.raises(WrongDigest):
        Digest(kind).open(bytes(raw), 1, 2)


@given(kind=st.sampled_from(DigestType), raw=st.binary(max_size=80))
def test_packet_when_any_bytes_are_opened_then_refused_or_read(kind: DigestType, raw: bytes) -> None:
    try:
        Digest(kind).open(raw, 1)
    except WrongDigest:
        return
    assert kind is DigestType.DUMMY


@pytest.mark.parametrize(("ledger_id", "entry_id"), [(2, 2), (1, 3)], ids=["ledger", "entry"])
def test_packet_when_of_another_entry_then_refused(ledger_id: int, entry_id: int) -> None:
    digest = Digest(DigestType.DUMMY)
    with pytest.raises(WrongDigest, match="1:2, not the one"):
        digest.open(digest.seal(1, 2, 1, 1, b"x"), ledger_id, entry_id)


def test_hmac_when_the_password_differs_then_refused() -> None:
    with pytest.raises(WrongDigest):
        Digest(DigestType.HMAC, b"b").open(Digest(DigestType.HMAC, b"a").seal(1, 2, 1, 1, b"x"), 1)


@given(
    kind=st.sampled_from(DigestType),
    payloads=st.lists(st.binary(max_size=30), max_size=9),
    spoil=st.integers(0, 8),
    how=st.sampled_from(["none", "bit", "ledger", "entry", "short"]),
)
def test_packets_when_opened_as_a_run_then_only_if_each_would_be(
    kind: DigestType, payloads: list[bytes], spoil: int, how: str
) -> None:
    digest = Digest(kind)
    raws = [digest.seal(7, 5 + each, 4, 99, payload) for each, payload in enumerate(payloads)]
    spoilt = how != "none" and spoil < len(raws) and not (how == "bit" and kind is DigestType.DUMMY)
    if spoilt:
        raws[spoil] = {
            "bit": bytes([raws[spoil][0]]) + bytes([raws[spoil][1] ^ 1]) + raws[spoil][2:],
            "ledger": digest.seal(8, 5 + spoil, 4, 99, payloads[spoil]),
            "entry": digest.seal(7, 6 + spoil, 4, 99, payloads[spoil]),
            "short": raws[spoil][:20],
        }[how]
    assert digest.open_run(raws, 7, 5) == (None if spoilt else payloads)
