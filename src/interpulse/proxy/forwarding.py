"""The greeting of a broker on behalf of a client.

A proxy without authentication forwards the client's credentials if configured, and nothing otherwise. A proxy with
authentication speaks for the client, with its own credentials.
"""

from __future__ import annotations

from typing import Final

import interpulse
from interpulse.client.credentials import Credentials
from interpulse.model.errors import AuthenticationError
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb

PROXY_VERSION: Final = f"interpulse-{interpulse.__version__}"

_NOT_FORWARDED: Final = (
    "proxy_to_broker_url",
    "original_principal",
    "original_auth_data",
    "original_auth_method",
)
"""Fields that clients may not set: the target is for the proxy, and the original client is set by the proxy alone."""
_CREDENTIALS: Final = ("auth_method", "auth_method_name", "auth_data")
_QUESTION_METHODS: Final = ("token", "basic")


def broker_connect(connect: pb.CommandConnect, *, credentials_forwarded: bool) -> bytes:
    """Return the CONNECT for the broker of a data connection: the client's own, with its feature flags unchanged."""
    greeting = _sent_on(connect, credentials=credentials_forwarded)
    if not credentials_forwarded:
        greeting.auth_method_name = "none"
    greeting.proxy_version = PROXY_VERSION
    return commands.encode(greeting)


def broker_connect_for(
    original: commands.OriginalClient, connect: pb.CommandConnect, auth_method: str, auth_data: bytes
) -> bytes:
    """Return the CONNECT of a proxy that speaks for the client. Method and credentials are the proxy's."""
    greeting = _sent_on(connect, credentials=False)
    greeting.auth_method_name = auth_method
    if auth_data:
        greeting.auth_data = auth_data
    original.write(greeting)
    return commands.encode(greeting)


def _sent_on(connect: pb.CommandConnect, *, credentials: bool) -> pb.CommandConnect:
    greeting = pb.CommandConnect()
    greeting.CopyFrom(connect)
    for name in _NOT_FORWARDED if credentials else (*_NOT_FORWARDED, *_CREDENTIALS):
        greeting.ClearField(name)
    return greeting


def forwarded_credentials(connect: pb.CommandConnect) -> Credentials | None:
    """Return the credentials for lookups of this client, None if it has none. Raise AuthenticationError."""
    method = connect.auth_method_name
    if method in ("", "none"):
        return None
    if method not in _QUESTION_METHODS:
        raise AuthenticationError(
            f"The proxy forwards credentials of the methods {' and '.join(_QUESTION_METHODS)}, not of {method[:100]!r}"
        )
    try:
        secret = connect.auth_data.decode()
    except UnicodeDecodeError:
        raise AuthenticationError("Failed to authenticate") from None
    if method == "token":
        return Credentials.token(f"token:{secret}")
    user, separator, password = secret.partition(":")
    if not separator:
        raise AuthenticationError("Failed to authenticate")
    return Credentials.basic(user, password)
