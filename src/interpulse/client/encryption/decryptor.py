"""Decrypts the entries that one consumer gets."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from interpulse.client.encryption.key_reader import CryptoKeyReader
from interpulse.model.errors import CryptoError
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import ParsedEntry

if TYPE_CHECKING:
    from interpulse.client.encryption.data_keys import DataKey

__all__ = ["Decryptor"]

_LIFETIME_S: Final = 4 * 3600.0
_KNOWN_MAX: Final = 1000


class Decryptor:
    """Opens payloads, and keeps data keys for four hours, so that a private key is not asked for each message."""

    def __init__(
        self, topic: str, key_reader: CryptoKeyReader | None, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Without ``key_reader`` nothing can be decrypted, and the error says so."""
        self._topic = topic
        self._key_reader = key_reader
        self._now = now
        self._known: dict[bytes, tuple[DataKey, float]] = {}
        """By the data key's encrypted form, with the time when it was made."""

    def open(self, entry: ParsedEntry) -> CryptoError | None:
        """Decrypt the entry in place: its metadata and payload become those of one that never was encrypted. If that
        fails, the entry is left as it is, and the reason given."""
        metadata = entry.metadata
        if not metadata.encryption_keys:
            return None
        problems = []
        for key in metadata.encryption_keys:
            try:
                payload = self._data_key(key).open(metadata.encryption_param, entry.payload)
            except CryptoError as error:
                problems.append(f"with the key {key.key!r}: {error}")
                continue
            entry.payload = memoryview(payload)
            entry.was_encrypted = True
            metadata.ClearField("encryption_keys")
            return None
        if self._key_reader is None:
            names = ", ".join(repr(key.key) for key in metadata.encryption_keys)
            problems = [f"it needs the private key of {names}, from a crypto_key_reader"]
        return CryptoError(f"a message of {self._topic} cannot be decrypted: {'; '.join(problems)}")

    def _data_key(self, key: pb.EncryptionKeys) -> DataKey:
        from interpulse.client.encryption.data_keys import DataKey, unwrapped

        known = self._known.get(key.value)
        if known is not None and self._now() < known[1] + _LIFETIME_S:
            return known[0]
        if self._key_reader is None:
            raise CryptoError("there is no crypto_key_reader")
        try:
            info = self._key_reader.private_key(key.key, {pair.key: pair.value for pair in key.metadata})
            data_key = DataKey(unwrapped(info.key, key.value))
        except CryptoError:
            raise
        except Exception as error:
            raise CryptoError(f"{type(error).__name__}: {error}") from error
        if len(self._known) >= _KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._known[key.value] = (data_key, self._now())
        return data_key
