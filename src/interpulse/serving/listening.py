"""Addresses of a program's services: bound when it starts, listened on when it is ready."""

from __future__ import annotations

import errno
import ipaddress
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_logger = logging.getLogger(__name__)


class CannotListen(Exception):
    """Failure to use an address. ``str()`` is the sentence for the user."""


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Address of one service; port 0 = a free one. Both methods raise CannotListen."""

    service: str
    host: str
    port: int

    def bind(self) -> socket.socket:
        """Bind the address without listening: its port is known, and no client can connect yet."""
        with self.listening():
            family, kind, protocol, _, address = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0]
            bound = socket.socket(family, kind, protocol)
            try:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                bound.bind(address)
            except OSError:
                bound.close()
                raise
            return bound

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Return a context for code that starts listening. An address taken by another process is noticed only then."""
        try:
            yield
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise CannotListen(f"{self.service}: port {self.port} on {self.host} is already in use") from error
            reason = error.strerror or error
            raise CannotListen(f"{self.service}: cannot listen on {self.host} port {self.port}: {reason}") from error


Bind = Callable[[ServiceAddress], socket.socket]
"""A function that binds an address without listening on it. Raises CannotListen."""


def advertised_host(advertised: str, *, listening: str, shown_to_clients: bool = True) -> str:
    """Return the host in the addresses of a program; that of ``listening`` if none is advertised.

    With ``shown_to_clients`` False only operators see the addresses. Raise CannotListen for an invalid host.
    """
    if is_every_address(advertised):
        raise CannotListen(
            f"advertisedAddress={advertised}: no client can connect to it; give a name or an address by which clients "
            "reach this machine"
        )
    advertised_or_bound = advertised or listening
    try:
        host = host_in_url(advertised_or_bound)
    except ValueError:
        raise CannotListen(
            f"advertisedAddress={advertised_or_bound}: must be a host name or address, without scheme and port"
        ) from None
    if shown_to_clients and is_every_address(advertised_or_bound):
        _logger.warning(
            "clients on other machines cannot reach the advertised address advertised=%s listening=%s remedy=%s",
            host,
            listening,
            "advertisedAddress=NAME, a name or address by which they reach this machine",
        )
    return host


def is_every_address(host: str) -> bool:
    """Return True if a service on this host listens on all addresses of this machine."""
    return host in ("0.0.0.0", "::")


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach a service on this host. A name counts as reachable by others."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_in_url(host: str) -> str:
    """Return a host in its form in a URL. An "every address" becomes ``localhost``, as in Pulsar.

    Raise ValueError for a text that is neither a name nor an address, such as one with a port.
    """
    if is_every_address(host):
        return "localhost"
    if ":" in host:
        return f"[{ipaddress.IPv6Address(host)}]"
    if "/" in host:
        raise ValueError(f"{host} has a slash")
    return host
