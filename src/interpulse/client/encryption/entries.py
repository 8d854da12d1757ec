"""Encryption of the entries of one producer, and decryption of those of one consumer."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal

from interpulse.client.encryption.key_reader import CryptoKeyReader
from interpulse.model.errors import CryptoError
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import ParsedEntry

if TYPE_CHECKING:
    from interpulse.client.encryption.data_keys import DataKey


_log = logging.getLogger(__name__)

ProducerCryptoFailureAction = Literal["fail", "send"]

_LIFETIME_S: Final = 4 * 3600.0  # as in Pulsar's clients
_RETRY_S: Final = 60.0
_IV_BYTES: Final = 12
_USES_MAX: Final = 2**32  # beyond, random parameters are too likely to repeat (NIST SP 800-38D, 8.3)
_KNOWN_MAX: Final = 1000


class Encryptor:
    """Encrypts with a data key, which is encrypted with every named public key and replaced every four hours."""

    def __init__(
        self,
        topic: str,
        names: Sequence[str],
        key_reader: CryptoKeyReader,
        action: ProducerCryptoFailureAction,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create an encryptor.

        With ``action`` "send", a message that cannot be encrypted is sent plain, with a warning.
        """
        self._topic = topic
        self._names = names
        self._key_reader = key_reader
        self._sends_plain = action == "send"
        self._now = now
        self._data_key: DataKey | None = None
        self._keys: list[pb.EncryptionKeys] = []
        self._uses = 0
        self._renew_at = 0.0

    def open(self) -> None:
        """Read the keys. Raise CryptoError unless ``action`` is "send"."""
        self._renew()

    def seal(self, metadata: pb.MessageMetadata, payload: bytes) -> bytes:
        """Return the encrypted payload and note in the metadata how to decrypt it. Raise CryptoError."""
        if self._now() >= self._renew_at or self._uses >= _USES_MAX:
            self._renew()
        if self._data_key is None:
            return payload
        self._uses += 1
        if not metadata.encryption_keys:
            metadata.encryption_keys.extend(self._keys)
        metadata.encryption_param = iv = os.urandom(_IV_BYTES)
        return self._data_key.seal(iv, payload)

    def _renew(self) -> None:
        """Replace the data key. If a public key cannot be read any more, keep the current data key."""
        self._renew_at = self._now() + _RETRY_S
        try:
            self._read_keys()
        except CryptoError as error:
            if self._data_key is not None and self._uses < _USES_MAX:
                _log.warning("data key not renewed, the old one is used on topic=%s error=%s", self._topic, error)
            elif self._sends_plain:
                self._data_key = None
                _log.warning("messages are sent without encryption topic=%s error=%s", self._topic, error)
            else:
                self._renew_at = 0.0
                raise
        else:
            self._renew_at = self._now() + _LIFETIME_S
            self._uses = 0

    def _read_keys(self) -> None:
        from interpulse.client.encryption.data_keys import DATA_KEY_BYTES, DataKey, wrapped

        data_key, keys = os.urandom(DATA_KEY_BYTES), []
        for name in self._names:
            try:
                info = self._key_reader.public_key(name, {})
                value = wrapped(info.key, data_key)
            except Exception as error:
                raise CryptoError(
                    f"messages for {self._topic} cannot be encrypted with the public key {name!r}: {error}; fix the key"
                ) from error
            pairs = [pb.KeyValue(key=key, value=text) for key, text in info.metadata.items()]
            keys.append(pb.EncryptionKeys(key=name, value=value, metadata=pairs))
        self._data_key, self._keys = DataKey(data_key), keys


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
