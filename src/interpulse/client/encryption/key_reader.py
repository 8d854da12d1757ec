"""Sources of the encryption keys of producers and consumers."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from interpulse.model.errors import CryptoError

KeyPlace = str | Path


class EncryptionKeyInfo(NamedTuple):
    """RSA key in PEM, and the metadata to send with each data key encrypted with it."""

    key: bytes
    metadata: Mapping[str, str] = {}


class CryptoKeyReader(Protocol):
    """Source of keys by name.

    It is called in the client's event loop and must not block. Any exception means that the key does not exist; its
    text becomes part of a CryptoError.
    """

    def public_key(self, name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        """Return a public key for a producer. Called when it starts and about every four hours."""

    def private_key(self, name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        """Return a private key for a consumer.

        Called for each new data key, with the metadata from the producer's reader.
        """


@dataclass(frozen=True, slots=True)
class DefaultCryptoKeyReader:
    """Key source that reads files, every time a key is requested.

    A location is a path, a ``file:`` URL, or a ``data:`` URL with the key in base64. One location serves all names, a
    mapping has one for each name.
    """

    public_keys: KeyPlace | Mapping[str, KeyPlace] | None = None
    private_keys: KeyPlace | Mapping[str, KeyPlace] | None = field(default=None, repr=False)

    def public_key(self, name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        return EncryptionKeyInfo(_read(_place(self.public_keys, "public", name), name))

    def private_key(self, name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        return EncryptionKeyInfo(_read(_place(self.private_keys, "private", name), name))


def _place(places: KeyPlace | Mapping[str, KeyPlace] | None, kind: str, name: str) -> str:
    place = places.get(name) if isinstance(places, Mapping) else places
    if place is None:
        raise CryptoError(f"there is no {kind} key {name!r}: name its file in {kind}_keys")
    return str(place)


def _read(place: str, name: str) -> bytes:
    """Read a key from its location. Raise CryptoError, which shows the location only if it is a file.

    A ``data:`` location is the key itself.
    """
    try:
        if place.startswith("data:"):
            return base64.b64decode(place.partition(",")[2], validate=True)
        path = unquote(urlsplit(place).path) if place.startswith("file:") else place
        return Path(path).read_bytes()
    except OSError as error:
        raise CryptoError(f"key {name!r} cannot be read from {place}: {error.strerror}") from error
    except binascii.Error as error:
        raise CryptoError(f"key {name!r} is not base64 in its data: URL: {error}") from error
