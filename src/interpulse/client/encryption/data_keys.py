"""Cryptography of Pulsar's clients: AES-256-GCM with a data key for payloads, RSA with OAEP for data keys.

OAEP uses SHA-1, which all clients expect and which is not known to be weak in this use. Only this module imports the
library.
"""

from __future__ import annotations

from typing import Final

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.x509 import load_pem_x509_certificate

from interpulse.model.errors import CryptoError

DATA_KEY_BYTES: Final = 32
TAG_BYTES: Final = 16
_OAEP: Final = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)


class DataKey:
    """Data key that encrypts and decrypts payloads."""

    __slots__ = ("_cipher",)

    def __init__(self, key: bytes) -> None:
        """Create the cipher. Raise CryptoError for a key that AES does not accept."""
        try:
            self._cipher = AESGCM(key)
        except ValueError as error:
            raise CryptoError(f"the data key has {len(key)} bytes: {error}") from error

    def seal(self, iv: bytes, payload: bytes | memoryview) -> bytes:
        """Return the encrypted payload with its tag at the end. Never use an ``iv`` twice."""
        return self._cipher.encrypt(iv, payload, None)

    def open(self, iv: bytes, sealed: bytes | memoryview) -> bytes:
        """Return the decrypted payload. Raise CryptoError if it was modified or encrypted with another key."""
        try:
            return self._cipher.decrypt(iv, sealed, None)
        except InvalidTag as error:
            raise CryptoError("its bytes were modified, or encrypted with another key") from error
        except ValueError as error:
            raise CryptoError(f"its encryption parameter has {len(iv)} bytes: {error}") from error


def wrapped(pem: bytes, data_key: bytes) -> bytes:
    """Encrypt a data key with the public key or certificate in PEM. Raise CryptoError."""
    try:
        if b"BEGIN CERTIFICATE" in pem:
            public = load_pem_x509_certificate(pem).public_key()
        else:
            public = serialization.load_pem_public_key(pem)  # type: ignore[assignment]  # the kind is checked below
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CryptoError(f"it is not a public key in PEM: {_one_line(error)}") from error
    if not isinstance(public, rsa.RSAPublicKey):
        raise CryptoError(f"it is a key of another kind ({type(public).__name__}): only RSA keys are supported")
    try:
        return public.encrypt(data_key, _OAEP)
    except ValueError as error:
        raise CryptoError(f"it cannot encrypt a data key: {_one_line(error)}") from error


def unwrapped(pem: bytes, value: bytes) -> bytes:
    """Decrypt a data key that :func:`wrapped` encrypted, with the private key in PEM. Raise CryptoError."""
    try:
        private = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CryptoError(f"it is not a private key in PEM without a password: {_one_line(error)}") from error
    if not isinstance(private, rsa.RSAPrivateKey):
        raise CryptoError(f"it is a key of another kind ({type(private).__name__}): only RSA keys are supported")
    try:
        return private.decrypt(value, _OAEP)
    except ValueError as error:
        raise CryptoError("it does not belong to the public key that the message was encrypted with") from error


def _one_line(error: Exception) -> str:
    return str(error).partition("\n")[0].partition(" [")[0]
