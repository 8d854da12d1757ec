"""Listeners of a broker: names by which clients in different networks request addresses that they can reach.

The form is Pulsar's ``advertisedListeners``: ``name:scheme://host:port`` separated by commas. A name may appear once
for each of the schemes ``pulsar``, ``pulsar+ssl``, ``http`` and ``https``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from interpulse.model.brokers import ListenerAddresses

_SCHEMES: Final = ("pulsar", "pulsar+ssl", "http", "https")
"""Schemes in the order of the fields of `ListenerAddresses`."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """Advertised listeners; empty if the setting is empty."""

    internal: str = ""
    """Listener for other brokers and for clients that name none; "" = there are no listeners."""
    by_name: Mapping[str, ListenerAddresses] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """Host of the internal listener, "" without listeners. An IPv6 address has brackets."""
        addresses = self.by_name.get(self.internal)
        return "" if addresses is None else next(_hosts(addresses))

    @property
    def hosts(self) -> frozenset[str]:
        """Hosts of all listeners."""
        return frozenset(host for addresses in self.by_name.values() for host in _hosts(addresses))


def plan_listeners(advertised: str, internal_name: str) -> Listeners:
    """Parse ``advertisedListeners`` and ``internalListenerName``. Raise ValueError with the problem."""
    urls: dict[str, dict[str, str]] = {}
    taken: dict[str, str] = {}
    for entry in filter(None, map(str.strip, advertised.split(","))):
        name, scheme, url, authority = _parts(entry)
        if scheme in urls.setdefault(name, {}):
            raise ValueError(f"the listener {name} has two addresses of {scheme}")
        if taken.setdefault(authority, name) != name:
            raise ValueError(f"{authority} is an address of two listeners, {taken[authority]} and {name}")
        urls[name][scheme] = url
    internal = internal_name or next(iter(urls), "")
    if internal not in urls and (urls or internal):
        raise ValueError(f"internalListenerName={internal} is none of the listeners {', '.join(urls) or '(none)'}")
    by_name = {
        name: ListenerAddresses(*(addresses.get(scheme, "") for scheme in _SCHEMES)) for name, addresses in urls.items()
    }
    without = [name for name, addresses in by_name.items() if not (addresses.service_url or addresses.service_url_tls)]
    if without:
        raise ValueError(f"the listener {without[0]} has no address of pulsar:// or pulsar+ssl://")
    return Listeners(internal, by_name)


def _parts(entry: str) -> tuple[str, str, str, str]:
    name, colon, url = entry.partition(":")
    parts = urlsplit(url)
    try:
        complete = bool(name and colon and parts.hostname and parts.port)
    except ValueError:
        complete = False
    if not complete or parts.scheme not in _SCHEMES or parts.path.strip("/") or parts.query or "@" in parts.netloc:
        raise ValueError(f"{entry} is not name:scheme://host:port with one of {', '.join(_SCHEMES)}")
    return name, parts.scheme, f"{parts.scheme}://{parts.netloc}", parts.netloc


def _hosts(addresses: ListenerAddresses) -> Iterator[str]:
    urls = (addresses.service_url, addresses.service_url_tls, addresses.web_url, addresses.web_url_tls)
    return (urlsplit(url).netloc.rpartition(":")[0] for url in urls if url)
