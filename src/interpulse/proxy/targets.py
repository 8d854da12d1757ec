"""The addresses that clients and requests may be sent to, as set by ``brokerProxyAllowed...``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from interpulse.serving.settings import ConfigError, words

Rule = TypeVar("Rule")
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


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
