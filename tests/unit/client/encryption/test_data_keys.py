"""The cryptography: what was sealed is opened, and nothing else is."""

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from interpulse.client.encryption.data_keys import DATA_KEY_BYTES, TAG_BYTES, DataKey, unwrapped, wrapped
from interpulse.model.errors import CryptoError
from tests.support.encryption_keys import KeyFiles

keys_of_data = st.binary(min_size=DATA_KEY_BYTES, max_size=DATA_KEY_BYTES)
ivs = st.binary(min_size=12, max_size=12)


@given(keys_of_data, ivs, st.binary(max_size=2000))
def test_payload_when_sealed_then_is_opened_again(key: bytes, iv: bytes, payload: bytes) -> None:
    sealed = DataKey(key).seal(iv, payload)
    assert len(sealed) == len(payload) + TAG_BYTES
    assert DataKey(key).open(iv, memoryview(sealed)) == payload


@given(keys_of_data, ivs, st.binary(max_size=200), st.data())
def test_payload_when_any_bit_of_it_changed_then_is_refused(
    key: bytes, iv: bytes, payload: bytes, data: st.DataObject
) -> None:
    sealed = bytearray(DataKey(key).seal(iv, payload))
    at = data.draw(st.integers(0, len(sealed) - 1))
    sealed[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CryptoError, match="its bytes were modified, or encrypted with another key"):
        DataKey(key).open(iv, bytes(sealed))


@given(keys_of_data, st.binary(max_size=40))
def test_payload_when_it_is_any_bytes_then_only_crypto_errors_come(key: bytes, sealed: bytes) -> None:
    for iv in (sealed[:12], b"", b"x" * 200):
        with pytest.raises(CryptoError):
            DataKey(key).open(iv, sealed)


@given(st.binary(max_size=64).filter(lambda key: len(key) not in (16, 24, 32)))
def test_data_key_when_aes_has_none_of_its_length_then_is_refused(key: bytes) -> None:
    with pytest.raises(CryptoError, match=f"the data key has {len(key)} bytes"):
        DataKey(key)


@settings(max_examples=10)  # to load a private key takes a tenth of a second
@given(keys_of_data)
def test_data_key_when_wrapped_then_its_private_key_alone_unwraps_it(
    orders: KeyFiles, returns: KeyFiles, data_key: bytes
) -> None:
    value = wrapped(orders.public.read_bytes(), data_key)
    assert unwrapped(orders.private.read_bytes(), value) == data_key
    with pytest.raises(CryptoError, match="does not belong to the public key"):
        unwrapped(returns.private.read_bytes(), value)


@pytest.mark.parametrize("pem", [b"", b"no key", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_key_when_it_is_none_then_the_error_says_so(pem: bytes) -> None:
    with pytest.raises(CryptoError, match="it is not a public key in PEM"):
        wrapped(pem, bytes(32))
    with pytest.raises(CryptoError, match="it is not a private key in PEM without a password"):
        unwrapped(pem, bytes(256))


def test_key_when_of_another_kind_then_the_error_says_which_is_supported() -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    public = private.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(CryptoError, match="only RSA keys are supported"):
        wrapped(public, bytes(32))
    with pytest.raises(CryptoError, match="only RSA keys are supported"):
        unwrapped(private.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain), b"")
