"""Decryption of entries for rows of messages."""

from __future__ import annotations

import logging

from interpulse.client.encryption.decryptor import Decryptor
from interpulse.client.encryption.key_reader import CryptoKeyReader
from interpulse.model.errors import CryptoError
from interpulse.model.ids import Position
from interpulse.wire.entries import ParsedEntry

_log = logging.getLogger(__name__)


class Decryption:
    """Decryption of the entries of one task. ``action`` says what happens to entries that cannot be decrypted.

    "fail" raises CryptoError, "discard" leaves them out, "consume" leaves them as they are. None means "fail" with a
    ``key_reader``, else "consume".
    """

    def __init__(self, key_reader: CryptoKeyReader | None, action: str | None) -> None:
        self._key_reader = key_reader
        self._action = action or ("consume" if key_reader is None else "fail")
        self._decryptors: dict[str, Decryptor] = {}

    def admits(self, topic: str, position: Position, entry: ParsedEntry) -> bool:
        """Decrypt the entry in place if possible. Return True if it becomes rows."""
        decryptor = self._decryptors.get(topic)
        if decryptor is None:
            decryptor = self._decryptors[topic] = Decryptor(topic, self._key_reader)
        problem = decryptor.open(entry)
        if problem is None or self._action == "consume":
            return True
        if self._action == "discard":
            _log.warning("encrypted entry discarded topic=%s position=%s error=%s", topic, position, problem)
            return False
        raise CryptoError(
            f"entry {position}: {problem}; give encryptionPrivateKey, or cryptoFailureAction=discard or consume"
        ) from problem
