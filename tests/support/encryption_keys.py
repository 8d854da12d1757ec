"""RSA keys for end-to-end encryption, in files as all clients read them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


class KeyFiles(NamedTuple):
    """One key pair."""

    public: Path
    private: Path


def new_keys(directory: Path, name: str) -> KeyFiles:
    """A key pair of 2048 bits, the private key in the traditional form, which Java's client wants."""
    private = rsa.generate_private_key(65537, 2048)
    files = KeyFiles(directory / f"{name}.public.pem", directory / f"{name}.private.pem")
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    files.public.write_bytes(private.public_key().public_bytes(serialization.Encoding.PEM, kind))
    traditional = serialization.PrivateFormat.TraditionalOpenSSL
    files.private.write_bytes(
        private.private_bytes(serialization.Encoding.PEM, traditional, serialization.NoEncryption())
    )
    return files
