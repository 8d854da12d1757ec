"""Keys of end-to-end encryption, as options name them: files, which every worker reads for itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec

from interpulse.client.encryption.key_reader import DefaultCryptoKeyReader
from interpulse.model.extras import pip_install

__all__ = ["KeyFiles", "parse_key_files", "private_key_reader", "public_key_reader"]

KeyFiles = tuple[tuple[str, str], ...]
"""Names and their files; the name "" stands for all."""


def parse_key_files(text: str) -> KeyFiles:
    """One file for all names, or JSON with one for each: ``{"orders": "/keys/orders.pem"}``.

    A key itself is refused: Spark shows options in plans and in its web pages.
    """
    if find_spec("cryptography") is None:
        raise ValueError(f"keys need cryptography as well: {pip_install('encryption')}")
    try:
        found = json.loads(text) if text.lstrip().startswith("{") else {"": text}
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON that names a file for each key: {error}") from None
    files = tuple((str(name), str(place).strip()) for name, place in found.items())
    if not files or not all(place for _, place in files):
        raise ValueError("names no file")
    if any(place.startswith("data:") or "BEGIN " in place for _, place in files):
        raise ValueError("a key itself would be seen in plans: give the name of its file")
    return files


def public_key_reader(files: KeyFiles) -> DefaultCryptoKeyReader:
    """Reads the files on the worker that encrypts."""
    return DefaultCryptoKeyReader(public_keys=_places(files))


def private_key_reader(files: KeyFiles) -> DefaultCryptoKeyReader | None:
    """None without files: nothing is decrypted."""
    return DefaultCryptoKeyReader(private_keys=_places(files)) if files else None


def _places(files: KeyFiles) -> str | Mapping[str, str]:
    return files[0][1] if files[0][0] == "" else dict(files)
