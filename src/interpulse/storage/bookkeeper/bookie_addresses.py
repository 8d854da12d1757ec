"""Addresses of bookies, in the form in which they register them."""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.message import DecodeError

from interpulse.storage.bookkeeper import bookkeeper_pb2 as pb

_PROTOCOL = "bookie-rpc"


class Address(NamedTuple):
    """Host and port of a bookie."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def registered_address(bookie_id: str, value: bytes) -> Address | None:
    """Return the address in a registered value. Older bookies register none; their id is the address."""
    try:
        endpoints = pb.BookieServiceInfoFormat.FromString(value).endpoints
    except DecodeError:
        return parse_address(bookie_id)
    for endpoint in endpoints:
        if endpoint.protocol == _PROTOCOL:
            return Address(endpoint.host, endpoint.port)
    return parse_address(bookie_id)


def parse_address(bookie_id: str) -> Address | None:
    """Return the address that a bookie's id is, None if the id is another kind of name."""
    host, _, port = bookie_id.rpartition(":")
    return Address(host, int(port)) if host and port.isascii() and port.isdecimal() and int(port) < 65536 else None
