"""The broker's half of a data connection, opened only after every check against use as an open relay.

The settings ``brokerProxyAllowed...`` limit the addresses that clients and requests may be sent to.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from interpulse.client.tls import KeptContext, TlsOptions
from interpulse.model.errors import PulsarError
from interpulse.proxy.brokers import Brokers
from interpulse.serving.settings import ConfigError, words

Rule = TypeVar("Rule")
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TargetRules:
    """Patterns of host names, networks and ranges of ports; None = any."""

    hosts: tuple[re.Pattern[str], ...] | None = None
    networks: tuple[_Network, ...] | None = None
    ports: tuple[range, ...] | None = None

    @classmethod
    def read(cls, host_names: str, ip_addresses: str, target_ports: str) -> TargetRules:
        """Parse the three settings. Raise ConfigError with the unreadable parts."""
        problems: list[str] = []
        rules = cls(
            _read("brokerProxyAllowedHostNames", host_names, _pattern, problems),
            _read("brokerProxyAllowedIPAddresses", ip_addresses, _network, problems),
            _read("brokerProxyAllowedTargetPorts", target_ports, _ports, problems),
        )
        if problems:
            raise ConfigError(*problems)
        return rules

    def refusal(self, host: str, port: int) -> str | None:
        """Return why this address may not be connected, before its name is resolved; None if it may."""
        if self.ports is not None and not any(port in allowed for allowed in self.ports):
            return f"port {port} is not among brokerProxyAllowedTargetPorts"
        return self.refusal_of_host(host)

    def refusal_of_host(self, host: str) -> str | None:
        """Return why this host may not be connected on any port; None if it may."""
        if self.hosts is not None and not any(pattern.fullmatch(host.lower()) for pattern in self.hosts):
            return f"host {host} is not among brokerProxyAllowedHostNames"
        if _is_ip(host) and not self.allows_ip(host):
            return f"{host} is not among brokerProxyAllowedIPAddresses"
        return None

    def allows_ip(self, address: str) -> bool:
        """Return True if a resolved address may be connected."""
        if self.networks is None:
            return True
        number = ipaddress.ip_address(address.partition("%")[0])
        mapped = number.ipv4_mapped if isinstance(number, ipaddress.IPv6Address) else None
        return any((mapped or number) in network for network in self.networks)


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _read(key: str, text: str, rule: Callable[[str], Rule], problems: list[str]) -> tuple[Rule, ...] | None:
    listed = words(text)
    if "*" in listed:
        return None
    read: list[Rule] = []
    for word in listed:
        try:
            read.append(rule(word))
        except ValueError as error:
            problems.append(f"{key}={word}: {error}")
    return tuple(read)


def _pattern(word: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in word.lower().split("*")))


def _network(word: str) -> _Network:
    try:
        return ipaddress.ip_network(word, strict=False)
    except ValueError:
        raise ValueError("must be an IP address, a network such as 10.0.0.0/8, or *") from None


def _ports(word: str) -> range:
    first, dash, last = word.partition("-")
    try:
        ports = range(int(first), int(last if dash else first) + 1)
    except ValueError:
        ports = range(0)
    if not ports or ports[0] < 1 or ports[-1] > 65_535:
        raise ValueError("must be a port, a range such as 6650-6660, or *")
    return ports


class TargetRefused(Exception):
    """Clients may not be connected to this address. ``str()`` gives the reason, for the log."""


class TargetUnreachable(Exception):
    """The broker cannot be connected now. ``str()`` gives the reason, for the log."""


class Dialer:
    """Connects to brokers by the ``host:port`` that a client names."""

    def __init__(self, brokers: Brokers, rules: TargetRules, *, timeout_seconds: float, tls: TlsOptions | None) -> None:
        """``tls`` None: connections to brokers are not encrypted."""
        self._brokers = brokers
        self._rules = rules
        self._timeout_seconds = timeout_seconds
        self._kept_context = None if tls is None else KeptContext(tls)

    async def connect(self, endpoint: str, protocol: asyncio.Protocol) -> None:
        """Connect ``protocol`` to the broker. Raise TargetRefused or TargetUnreachable."""
        host, port = self._allowed(endpoint)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._connect(host, port, protocol)
        except TimeoutError:
            raise TargetUnreachable(f"no answer within {self._timeout_seconds:g} s") from None
        except (OSError, PulsarError) as error:
            raise TargetUnreachable(getattr(error, "strerror", None) or str(error) or type(error).__name__) from error

    def _allowed(self, endpoint: str) -> tuple[str, int]:
        try:
            parts = urlsplit(f"//{endpoint}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if not host or not port or parts.path or parts.query or parts.fragment or parts.username is not None:
            raise TargetRefused("it is not host:port")
        refusal = self._rules.refusal(host, port)
        if refusal is not None:
            raise TargetRefused(refusal)
        if not self._brokers.knows(endpoint):
            raise TargetRefused(
                "it is not a broker of the proxy: neither configured nor registered, nor named by a broker in a lookup"
            )
        return host, port

    async def _connect(self, host: str, port: int, protocol: asyncio.Protocol) -> None:
        """Connect to the addresses that were checked, rather than resolving the name again."""
        loop = asyncio.get_running_loop()
        resolved = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(info[4][0]) for info in resolved))
        allowed = [address for address in addresses if self._rules.allows_ip(address)]
        if not allowed:
            raise TargetRefused(f"{', '.join(addresses)} is not among brokerProxyAllowedIPAddresses")
        context = None if self._kept_context is None else self._kept_context.current()
        name = host if context is not None else None
        for address in allowed[:-1]:
            try:
                await loop.create_connection(lambda: protocol, address, port, ssl=context, server_hostname=name)
            except OSError as error:
                _logger.debug("broker not reached address=%s port=%d reason=%s", address, port, error)
            else:
                return
        await loop.create_connection(lambda: protocol, allowed[-1], port, ssl=context, server_hostname=name)
