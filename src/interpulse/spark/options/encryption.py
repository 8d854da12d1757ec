"""Keys of end-to-end encryption in options: names of files, which every worker reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec

from interpulse.client.encryption.key_reader import DefaultCryptoKeyReader
from interpulse.model.extras import pip_install

KeyFiles = tuple[tuple[str, str], ...]
"""Names of keys and their files. The name "" covers all keys."""


def parse_key_files(text: str) -> KeyFiles:
    """Read one file for all names, or JSON with a file per name: ``{"orders": "/keys/orders.pem"}``.

    A key itself is refused: Spark shows options in plans and in its web pages.
    """
    if find_spec("cryptography") is None:
        raise ValueError(f"keys need cryptography as well: {pip_install('encryption')}")
    try:
        by_name = json.loads(text) if text.lstrip().startswith("{") else {"": text}
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON that names a file for each key: {error}") from None
    files = tuple((str(name), str(path).strip()) for name, path in by_name.items())
    if not files or not all(path for _, path in files):
        raise ValueError("names no file")
    if any(path.startswith("data:") or "BEGIN " in path for _, path in files):
        raise ValueError("a key would be visible in plans: use the name of its file")
    return files


def public_key_reader(files: KeyFiles) -> DefaultCryptoKeyReader:
    """Return a reader of the public keys, for the worker that encrypts."""
    return DefaultCryptoKeyReader(public_keys=_paths(files))


def private_key_reader(files: KeyFiles) -> DefaultCryptoKeyReader | None:
    """Return a reader of the private keys; None without files: nothing is decrypted."""
    return DefaultCryptoKeyReader(private_keys=_paths(files)) if files else None


def _paths(files: KeyFiles) -> str | Mapping[str, str]:
    return files[0][1] if files[0][0] == "" else dict(files)
