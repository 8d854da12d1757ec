"""What OAuth 2 calls the grant of client credentials: who a client is for an issuer of tokens, and what it asks for.

The parameters are those of Pulsar's clients, in the spelling of Java and in that of C++ and Python.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote_to_bytes, urlsplit

from interpulse.model.errors import AuthenticationError

__all__ = ["ClientGrant"]

_GRANT_TYPE: Final = "client_credentials"
_SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "type": ("type",),
    "issuer_url": ("issuerUrl", "issuer_url"),
    "private_key": ("privateKey", "private_key"),
    "client_id": ("clientId", "client_id"),
    "client_secret": ("clientSecret", "client_secret"),
    "audience": ("audience",),
    "scope": ("scope",),
    "trust_certs_path": ("trustCertsFilePath", "tls_trust_certs_file_path"),
}


@dataclass(frozen=True, slots=True)
class ClientGrant:
    """Where tokens come from. The secret stays in its file until it is needed, and is read anew each time."""

    issuer_url: str
    key_source: str
    """``file:...``, ``data:...`` or the path of a file with client id and secret; empty: they are given themselves."""
    client_id: str
    client_secret: str
    audience: str
    scope: str
    trust_certs_path: str | None
    """The authorities of the issuer; None: those that are trusted elsewhere."""

    @classmethod
    def parse(cls, params: str) -> ClientGrant:
        """Read ``authParams``; raises ValueError that names what is missing or not known."""
        given = _fields(params)
        if given.get("type", _GRANT_TYPE) != _GRANT_TYPE:
            raise ValueError(f"authentication by OAuth 2: type {given['type']!r} is not offered, only {_GRANT_TYPE} is")
        if not given.get("issuer_url", "").startswith(("https://", "http://")):
            raise ValueError("authentication by OAuth 2: issuerUrl is missing, an address such as https://issuer")
        by_name = bool(given.get("client_id") and given.get("client_secret"))
        if not by_name and not given.get("private_key"):
            raise ValueError(
                "authentication by OAuth 2: privateKey is missing, the file that the issuer made for this client "
                "(file:///path), or client_id and client_secret"
            )
        if given.get("private_key", "").lstrip().startswith("{"):
            raise ValueError(
                "authentication by OAuth 2: privateKey is the file of the key (file:///path), not its content"
            )
        return cls(
            given["issuer_url"],
            given.get("private_key", ""),
            given.get("client_id", ""),
            given.get("client_secret", ""),
            given.get("audience", ""),
            given.get("scope", ""),
            given.get("trust_certs_path") or None,
        )

    @property
    def is_elsewhere(self) -> bool:
        """Whether the secret stands in a file, so that nobody learns it from these parameters."""
        return bool(self.key_source) and not self.key_source.startswith("data:") and not self.client_secret

    def form(self) -> dict[str, str]:
        """What is sent to the issuer; raises AuthenticationError where the file cannot be used."""
        client_id, secret = (self.client_id, self.client_secret) if not self.key_source else _read_key(self.key_source)
        asked = {"grant_type": _GRANT_TYPE, "client_id": client_id, "client_secret": secret}
        return asked | {name: text for name, text in (("audience", self.audience), ("scope", self.scope)) if text}


def _fields(params: str) -> dict[str, str]:
    try:
        given = json.loads(params)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise ValueError(
            'authentication by OAuth 2 needs {"issuerUrl":"https://...","privateKey":"file:///...","audience":"..."} '
            "as authentication parameters"
        )
    names = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings}
    unknown = sorted(set(given) - set(names))
    if unknown:
        known = ", ".join(spellings[0] for spellings in _SPELLINGS.values())
        raise ValueError(f"authentication by OAuth 2: {', '.join(unknown)} is not known; known are {known}")
    return {names[spelling]: str(value) for spelling, value in given.items()}


def _read_key(source: str) -> tuple[str, str]:
    """Client id and secret of a key file."""
    try:
        described: Any = json.loads(_content(source))
        return str(described["client_id"]), str(described["client_secret"])
    except OSError as error:
        raise AuthenticationError(f"the key file {error.filename} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        shown = "that is given" if source.startswith("data:") else source
        raise AuthenticationError(f"the key file {shown} is not JSON with client_id and client_secret") from error


def _content(source: str) -> bytes:
    if source.startswith("data:"):
        head, _, body = source.partition(",")
        try:
            return base64.b64decode(body, validate=True) if head.endswith(";base64") else unquote_to_bytes(body)
        except binascii.Error as error:
            raise ValueError(str(error)) from error
    return Path(urlsplit(source).path if source.startswith("file:") else source).read_bytes()
