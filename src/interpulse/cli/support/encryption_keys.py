"""The keys of -ekv."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from interpulse.cli.support.running import UNUSABLE, CommandFailed

if TYPE_CHECKING:
    from interpulse.client.encryption.key_reader import DefaultCryptoKeyReader

__all__ = ["key_reader"]


def key_reader(*, public: str | None = None, private: str | None = None) -> DefaultCryptoKeyReader:
    """Reads one key, whatever its name. Raises CommandFailed if what it needs is not installed."""
    if find_spec("cryptography") is None:
        raise CommandFailed("-ekv needs cryptography as well: pip install 'interpulse[encryption]'", UNUSABLE)
    from interpulse.client.encryption.key_reader import DefaultCryptoKeyReader

    return DefaultCryptoKeyReader(public, private)
