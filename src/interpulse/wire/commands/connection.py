"""Greeting, credentials, keep-alive, and answers to any request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from interpulse.model.errors import PulsarError, ServerError
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands.encoding import encode, error_code
from interpulse.wire.ids import unsigned

PING: Final = encode(pb.CommandPing())
PONG: Final = encode(pb.CommandPong())


@dataclass(frozen=True, slots=True)
class OriginalClient:
    """The client that a proxy speaks for, as reported to brokers."""

    principal: str
    proxy_version: str
    auth_method: str | None = None
    """None if its credentials are not forwarded."""
    auth_data: str | None = field(default=None, repr=False)

    def write(self, greeting: pb.CommandConnect) -> None:
        """Set the client in CONNECT."""
        greeting.proxy_version = self.proxy_version
        greeting.original_principal = self.principal
        if self.auth_method is not None:
            greeting.original_auth_method = self.auth_method
            greeting.original_auth_data = self.auth_data or ""


def connect(
    *,
    client_version: str,
    protocol_version: int,
    feature_flags: pb.FeatureFlags,
    auth_method: str = "none",
    auth_data: bytes = b"",
    proxy_to_broker_url: str | None = None,
    original: OriginalClient | None = None,
) -> bytes:
    """Greet a broker. ``proxy_to_broker_url`` is host:port of the broker behind a proxy.

    ``original`` is set by a proxy that speaks for one of its clients.
    """
    greeting = pb.CommandConnect(
        client_version=client_version,
        protocol_version=protocol_version,
        auth_method_name=auth_method,
        auth_data=auth_data or None,
        feature_flags=feature_flags,
        proxy_to_broker_url=proxy_to_broker_url,
    )
    if original is not None:
        original.write(greeting)
    return encode(greeting)


def connected(
    *, server_version: str, protocol_version: int, message_bytes_max: int | None, feature_flags: pb.FeatureFlags
) -> bytes:
    """Accept a greeting. ``message_bytes_max`` None: the sender does not know it."""
    return encode(
        pb.CommandConnected(
            server_version=server_version,
            protocol_version=protocol_version,
            max_message_size=message_bytes_max,
            feature_flags=feature_flags,
        )
    )


def auth_challenge(*, server_version: str, protocol_version: int, auth_method: str, auth_data: bytes) -> bytes:
    """Ask for new credentials. Send this only to peers that announced supports_auth_refresh."""
    challenge = pb.AuthData(auth_method_name=auth_method, auth_data=auth_data)
    return encode(
        pb.CommandAuthChallenge(server_version=server_version, challenge=challenge, protocol_version=protocol_version)
    )


def auth_response(*, client_version: str, protocol_version: int, auth_method: str, auth_data: bytes) -> bytes:
    response = pb.AuthData(auth_method_name=auth_method, auth_data=auth_data)
    return encode(
        pb.CommandAuthResponse(client_version=client_version, response=response, protocol_version=protocol_version)
    )


def success(request_id: int) -> bytes:
    return encode(pb.CommandSuccess(request_id=request_id))


def error(request_id: int, code: int, message: str) -> bytes:
    """Report an error. ``request_id`` -1: not the answer to a request, for example during the handshake."""
    return encode(pb.CommandError(request_id=unsigned(request_id), error=error_code(code), message=message))


def error_of(request_id: int, failure: PulsarError) -> bytes:
    """Return the ERROR frame for an error of the catalogue."""
    return error(request_id, failure.wire_code, str(failure))


def transactions_refused(request_id: int) -> bytes:
    """Refuse a transaction command, in the words that clients compare."""
    return error(request_id, ServerError.NotAllowedError, "Transactions are not enabled.")
