"""OAuth 2 client credentials grant: the client's identity at the issuer, and the scope it requests.

The parameters are those of Pulsar's clients, in the spelling of Java and of C++ and Python.
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
    """Parameters of the token request. The secret stays in its file and is read again for every request."""

    issuer_url: str
    key_source: str
    """``file:...``, ``data:...`` or the path of a file with client id and secret. Empty: they are passed directly."""
    client_id: str
    client_secret: str
    audience: str
    scope: str
    trust_certs_path: str | None
    """Trusted authorities for the issuer's certificate. None: those of the client."""

    @classmethod
    def parse(cls, params: str) -> ClientGrant:
        """Parse ``authParams``. Raise ValueError, naming a missing or unknown parameter."""
        fields = _fields(params)
        if fields.get("type", _GRANT_TYPE) != _GRANT_TYPE:
            raise ValueError(
                f"authentication by OAuth 2: type {fields['type']!r} is not offered, only {_GRANT_TYPE} is"
            )
        if not fields.get("issuer_url", "").startswith(("https://", "http://")):
            raise ValueError("authentication by OAuth 2: issuerUrl is missing, an address such as https://issuer")
        by_name = bool(fields.get("client_id") and fields.get("client_secret"))
        if not by_name and not fields.get("private_key"):
            raise ValueError(
                "authentication by OAuth 2: privateKey is missing, the file that the issuer made for this client "
                "(file:///path), or client_id and client_secret"
            )
        if fields.get("private_key", "").lstrip().startswith("{"):
            raise ValueError(
                "authentication by OAuth 2: privateKey is the file of the key (file:///path), not its content"
            )
        return cls(
            fields["issuer_url"],
            fields.get("private_key", ""),
            fields.get("client_id", ""),
            fields.get("client_secret", ""),
            fields.get("audience", ""),
            fields.get("scope", ""),
            fields.get("trust_certs_path") or None,
        )

    @property
    def is_elsewhere(self) -> bool:
        """Return True if the secret is in a file, so that these parameters do not reveal it."""
        return bool(self.key_source) and not self.key_source.startswith("data:") and not self.client_secret

    def form(self) -> dict[str, str]:
        """Return the form to send to the issuer. Raise AuthenticationError if the file cannot be used."""
        client_id, secret = (self.client_id, self.client_secret) if not self.key_source else _read_key(self.key_source)
        asked = {"grant_type": _GRANT_TYPE, "client_id": client_id, "client_secret": secret}
        return asked | {name: text for name, text in (("audience", self.audience), ("scope", self.scope)) if text}


def _fields(params: str) -> dict[str, str]:
    try:
        fields = json.loads(params)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise ValueError(
            'authentication by OAuth 2 needs {"issuerUrl":"https://...","privateKey":"file:///...","audience":"..."} '
            "as authentication parameters"
        )
    names = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings}
    unknown = sorted(set(fields) - set(names))
    if unknown:
        allowed = ", ".join(spellings[0] for spellings in _SPELLINGS.values())
        raise ValueError(f"authentication by OAuth 2: {', '.join(unknown)} is not known; known are {allowed}")
    return {names[spelling]: str(value) for spelling, value in fields.items()}


def _read_key(source: str) -> tuple[str, str]:
    """Return client id and secret of a key file."""
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
