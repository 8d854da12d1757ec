"""Client credentials: tokens, passwords, certificates and token issuers.

Names are those of Pulsar's configuration files, and of the parameters of its clients. A :class:`Credentials` value
holds the *source* of the secret, not the secret. It can be sent to another process, and a renewed token file is read
again for every new connection.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal
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

_PLUGINS = {
    "token": "AuthenticationToken",
    "basic": "AuthenticationBasic",
    "tls": "AuthenticationTls",
    "oauth2": "AuthenticationOAuth2",
}
_METHODS = {name: method for method, plugin in _PLUGINS.items() for name in (method, plugin)}
_DISABLED_NAMES = frozenset({"none", "AuthenticationDisabled"})
_CERTIFICATE = "tlsCertFile"
_KEY = "tlsKeyFile"
_USER = "userId"
_PASSWORD = "password"


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
            issuer_url=fields["issuer_url"],
            key_source=fields.get("private_key", ""),
            trust_certs_path=fields.get("trust_certs_path") or None,
            **{name: fields.get(name, "") for name in ("client_id", "client_secret", "audience", "scope")},
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


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials for the binary protocol and for HTTP.

    ``source`` depends on the method. Token: ``token:...``, ``file:...``, ``env:NAME`` or the token itself. Basic
    authentication: ``{"userId": "...", "password": "..."}``, or ``file:...`` or ``env:NAME`` with that JSON or with
    ``user:password``. TLS: the files of certificate and key, ``tlsCertFile:...,tlsKeyFile:...``, or empty; the
    certificate of the connection authenticates the client, and nothing else is sent. OAuth 2: JSON, see `ClientGrant`;
    the client requests tokens from the issuer.
    """

    method: Literal["token", "basic", "tls", "oauth2"]
    source: str = field(repr=False)

    @classmethod
    def token(cls, source: str) -> Credentials:
        return cls("token", source)

    @classmethod
    def basic(cls, user: str, password: str) -> Credentials:
        return cls("basic", json.dumps({_USER: user, _PASSWORD: password}))

    @classmethod
    def tls(cls, certificate_path: str, key_path: str) -> Credentials:
        return cls("tls", json.dumps({_CERTIFICATE: certificate_path, _KEY: key_path}))

    @classmethod
    def oauth2(cls, issuer_url: str, private_key: str, *, audience: str = "", scope: str = "") -> Credentials:
        """Return credentials for OAuth 2. Raise ValueError.

        ``private_key`` is the key file ``file:///path`` that the issuer created for this client.
        """
        params = {"issuerUrl": issuer_url, "privateKey": private_key, "audience": audience, "scope": scope}
        credentials = cls("oauth2", json.dumps(params))
        _ = credentials.grant  # refused here if it cannot be read
        return credentials

    @classmethod
    def from_plugin(cls, plugin: str | None, params: str | None) -> Credentials | None:
        """Parse Pulsar's ``authPlugin`` and ``authParams``. Return None without a plug-in.

        Java class names are recognized by their last part. Raise ValueError for an unsupported plug-in and for invalid
        parameters.
        """
        name = (plugin or "").rpartition(".")[2]
        if not name or name in _DISABLED_NAMES:
            return None
        source, method = params or "", _METHODS.get(name)
        if method == "token":
            if not source:
                raise ValueError(
                    "the token is missing: give token:..., file:... or env:... as authentication parameters"
                )
            return cls.token("token:" + _json_field(source, "token") if source.startswith("{") else source)
        if method == "basic":
            return cls("basic", source) if _is_elsewhere(source) else cls.basic(*_user_and_password(source))
        if method in ("tls", "oauth2"):
            credentials = cls(method, source)  # type: ignore[arg-type]  # it is one of the two
            _ = credentials.certificate if method == "tls" else credentials.grant  # refused here if it cannot be read
            return credentials
        raise ValueError(
            f"authentication plug-in {plugin} is not supported, only AuthenticationToken, AuthenticationTls, "
            "AuthenticationBasic and AuthenticationOAuth2 are"
        )

    @property
    def auth_method(self) -> str:
        """Method name in CONNECT. OAuth 2 sends a token."""
        return "token" if self.method == "oauth2" else self.method

    @property
    def grant(self) -> ClientGrant:
        """Token request of the method ``oauth2``. Raises ValueError."""
        return ClientGrant.parse(self.source)

    @property
    def plugin(self) -> str:
        """Short Java name, which `from_plugin` accepts together with the source."""
        return _PLUGINS[self.method]

    @property
    def can_change(self) -> bool:
        """True if the next connection may use another secret, because it comes from a file or an issuer."""
        return self.method == "oauth2" or self.source.startswith("file:") or self.certificate is not None

    @property
    def certificate(self) -> tuple[str, str] | None:
        """Files of certificate and key. None for other methods, and if the connection has its own certificate."""
        return _certificate_and_key(self.source) if self.method == "tls" and self.source else None

    def secret(self) -> str:
        """Return the current secret. Raise AuthenticationError if its file or environment variable cannot be read."""
        if self.method == "tls":
            return ""
        if self.method == "basic":
            try:
                return ":".join(_user_and_password(_secret_at(self.source, "password")))
            except ValueError as error:
                shown = self.source if _is_elsewhere(self.source) else "the password"
                raise AuthenticationError(f"{shown} cannot be used: {error}") from error
        assert self.method == "token", "an issuer is asked by `IssuedTokens`"
        if self.source.startswith("token:"):
            return self.source.removeprefix("token:")
        return _secret_at(self.source, "token")

    def http_header(self) -> str | None:
        """Return the value of the ``Authorization`` header; None for credentials without one."""
        if self.method == "tls":
            return None
        if self.method == "basic":
            return "Basic " + base64.b64encode(self.secret().encode()).decode("ascii")
        return f"Bearer {self.secret()}"


def _user_and_password(params: str) -> tuple[str, str]:
    if params.startswith("{"):
        return _json_field(params, _USER), _json_field(params, _PASSWORD)
    user, separator, password = params.partition(":")
    if not separator:
        raise ValueError('basic authentication needs {"userId":"...","password":"..."} as authentication parameters')
    return user, password


def _certificate_and_key(params: str) -> tuple[str, str]:
    """Parse the two files from JSON or from ``name:value`` pairs with commas; Pulsar has both forms."""
    if params.startswith("{"):
        return _json_field(params, _CERTIFICATE), _json_field(params, _KEY)
    paths = {name.strip(): value.strip() for name, _, value in (part.partition(":") for part in params.split(","))}
    absent = [name for name in (_CERTIFICATE, _KEY) if not paths.get(name)]
    if absent:
        raise ValueError(
            f"authentication by TLS: {' and '.join(absent)} missing in the authentication parameters, which are "
            f"{_CERTIFICATE}:/path,{_KEY}:/path"
        )
    return paths[_CERTIFICATE], paths[_KEY]


def _json_field(params: str, name: str) -> str:
    try:
        value = json.loads(params)[name]
    except (ValueError, KeyError) as error:
        raise ValueError(f"the authentication parameters are not JSON with the field {name}") from error
    return str(value)


def _is_elsewhere(source: str) -> bool:
    return source.startswith(("file:", "env:"))


def _secret_at(source: str, what: str) -> str:
    """Return the secret that the source refers to, or the source itself. ``what`` names it in errors."""
    if source.startswith("env:"):
        name = source.removeprefix("env:")
        if (value := os.environ.get(name)) is None:
            raise AuthenticationError(f"the environment variable {name}, which should hold the {what}, is not set")
        return value.strip()
    if not source.startswith("file:"):
        return source
    path = Path(urlsplit(source).path)
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise AuthenticationError(f"the {what} file {path} cannot be read: {reason}") from error
