"""The servers of one ZooKeeper ensemble, as connect strings name them."""

from __future__ import annotations

from typing import Final, NamedTuple

_PORT: Final = 2181


class Server(NamedTuple):
    """One server of the ensemble."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Servers(NamedTuple):
    """All servers that may be asked, and the node that acts as the root (empty: the root itself)."""

    servers: tuple[Server, ...]
    chroot: str = ""

    def __str__(self) -> str:
        return ",".join(map(str, self.servers)) + self.chroot


def parse_servers(text: str) -> Servers:
    """Parse ``host1:2181,host2:2181/chroot``, with or without Pulsar's ``zk:`` in front. Raise ValueError."""
    addresses, slash, chroot = text.removeprefix("zk:").removeprefix("//").partition("/")
    chroot = "/" + chroot.strip("/") if slash and chroot.strip("/") else ""
    try:
        if "//" in chroot:
            raise ValueError("two slashes in the path")
        return Servers(tuple(_server(address.strip()) for address in addresses.split(",")), chroot)
    except ValueError as error:
        raise ValueError(
            f"{text!r} does not name ZooKeeper servers: {error}; write host1:2181,host2:2181/path"
        ) from None


def _server(address: str) -> Server:
    if address.startswith("["):
        host, closed, rest = address[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise ValueError(f"{address!r} is no address")
        colon, port = rest[:1], rest[1:]
    else:
        host, colon, port = address.partition(":")
    if not host or (colon and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536)):
        raise ValueError(f"{address!r} is no host and port")
    return Server(host, int(port) if colon else _PORT)
