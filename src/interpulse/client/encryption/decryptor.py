"""Decryption of the entries of one consumer."""

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

_LIFETIME_S: Final = 4 * 3600.0
_KNOWN_MAX: Final = 1000


class Decryptor:
    """Decrypts payloads. Caches data keys for four hours, so that private keys are not read for every message."""

    def __init__(
        self, topic: str, key_reader: CryptoKeyReader | None, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Create a decryptor. Without ``key_reader`` it decrypts nothing, and its error says so."""
        self._topic = topic
        self._key_reader = key_reader
        self._now = now
        self._cached: dict[bytes, tuple[DataKey, float]] = {}
        """Cached data keys with their creation time, by the encrypted key."""

    def open(self, entry: ParsedEntry) -> CryptoError | None:
        """Decrypt the entry in place, as if it had never been encrypted. Return the reason if that fails.

        On failure the entry is unchanged.
        """
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

        cached = self._cached.get(key.value)
        if cached is not None and self._now() < cached[1] + _LIFETIME_S:
            return cached[0]
        if self._key_reader is None:
            raise CryptoError("there is no crypto_key_reader")
        try:
            info = self._key_reader.private_key(key.key, {pair.key: pair.value for pair in key.metadata})
            data_key = DataKey(unwrapped(info.key, key.value))
        except CryptoError:
            raise
        except Exception as error:
            raise CryptoError(f"{type(error).__name__}: {error}") from error
        if len(self._cached) >= _KNOWN_MAX:
            del self._cached[next(iter(self._cached))]
        self._cached[key.value] = (data_key, self._now())
        return data_key
