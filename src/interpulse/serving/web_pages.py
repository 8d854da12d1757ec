"""Protection of the admin API from web pages: a browser calls any address for a page, with the user's rights.

Two rules for every route that is not open to all, and a third for a GET that can create a topic:

* Requests from a page of another origin are refused. Browsers report the origin in ``Sec-Fetch-Site``, or in ``Origin``
  if that is missing, and no page can change this (the rule of Go's ``http.CrossOriginProtection``; here it also applies
  to GET, which can create a topic). Programs send neither header.
* ``Host`` must be a name of the program. A page whose own name resolves to the program's address (DNS rebinding) has
  the same origin for its browser, but it uses the wrong name. A literal address is always accepted, because no name
  could have been redirected. A broker checks this only if it accepts callers without credentials, because a browser
  never sends its credentials automatically. A proxy checks no credentials, so it always checks this.
* A request from a browser without origin creates nothing. Over plain HTTP to a network address browsers send neither
  header with the GET of an image or a script. They identify themselves as ``Mozilla/``, which no page can change;
  ``Accept`` does not help, because that of a script is the one of curl.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol
from urllib.parse import urlsplit

from interpulse.model.errors import Forbidden
from interpulse.serving.listening import is_every_address
from interpulse.serving.settings import words

_ALLOWED_HOSTS: Final = "webServiceAllowedHosts"
_OWN_SITES: Final = frozenset({"same-origin", "none"})
_BROWSERS: Final = "Mozilla/"
_SHOWN_MAX: Final = 100
_HOSTS_KEPT: Final = 64


class NamedProgram(Protocol):
    """Settings that name a program on the network."""

    @property
    def bind_address(self) -> str: ...

    @property
    def advertised_address(self) -> str: ...

    @property
    def web_service_allowed_hosts(self) -> str: ...


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """Names by which the web service may be called, all in lower case."""

    names: frozenset[str]
    domains: tuple[str, ...] = (".localhost",)
    """Domains whose subdomains are accepted."""
    any_name: bool = False
    program: str = "broker"
    """Name of the program in refusals."""

    @classmethod
    def of(cls, config: NamedProgram, program: str = "broker", also: Iterable[str] = ()) -> KnownHosts:
        """Return the names of a program: those it listens on and advertises, ``also`` others, and the operator's."""
        bound = socket.gethostname() if is_every_address(config.bind_address) else config.bind_address
        allowed = words(config.web_service_allowed_hosts.lower())
        domains = tuple(name for name in allowed if name.startswith("."))
        names = {"localhost", bound.lower(), config.advertised_address.lower(), *map(str.lower, also), *allowed}
        return cls(
            frozenset(names - {"", "*", *domains}), (".localhost", *domains), any_name="*" in allowed, program=program
        )

    def check(self, headers: Mapping[str, str]) -> None:
        """Raise Forbidden if the request is for another host. Programs may omit ``Host``, browsers never do."""
        host = headers.get("Host", "")
        if not host or self.any_name or self._is_ours(_name_of(host)):
            return
        raise Forbidden(
            f"Host: {_shown(host)} is not a name of this {self.program}, so a web page may be behind this request. "
            f"Call the {self.program} by its IP address, as localhost or by advertisedAddress, or add the name to "
            f"{_ALLOWED_HOSTS}"
        )

    def _is_ours(self, name: str) -> bool:
        if name in self.names or any(name.endswith(domain) or name == domain[1:] for domain in self.domains):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def check_origin(headers: Mapping[str, str]) -> None:
    """Raise Forbidden for a request from a web page of another origin."""
    site, origin = headers.get("Sec-Fetch-Site"), headers.get("Origin")
    if site is not None:
        if site not in _OWN_SITES:
            raise _foreign(f"Sec-Fetch-Site: {_shown(site)}")
    elif origin is not None and not _is_same(origin, headers.get("Host", "")):
        raise _foreign(f"Origin: {_shown(origin)}")


def check_source_of_creation(headers: Mapping[str, str]) -> None:
    """Raise Forbidden if a browser requests a creation without stating the same origin.

    Call it for requests that `check_origin` accepts.
    """
    if "Sec-Fetch-Site" in headers or "Origin" in headers or not headers.get("User-Agent", "").startswith(_BROWSERS):
        return
    if not _is_same(headers.get("Referer", ""), headers.get("Host", "")):
        raise Forbidden(
            "A browser asks for this, and does not say for which page: an image of any page could do that, so no topic "
            "is created. Leave out checkAllowAutoCreation, or use a program such as pulsar-admin or curl"
        )


def _foreign(header: str) -> Forbidden:
    return Forbidden(
        f"{header} says that a web page from elsewhere sends this request; it is refused. Use a program such as "
        "pulsar-admin or curl, or serve the page and the broker under one address, by a proxy that keeps Host"
    )


def _is_same(origin: str, host: str) -> bool:
    """Return True for equal hosts, with any scheme: a proxy that terminates TLS preserves the host."""
    _, separator, place = origin.partition("://")
    return bool(separator) and place.partition("/")[0].lower() == host.lower()


@lru_cache(maxsize=_HOSTS_KEPT)
def _name_of(host: str) -> str:
    """Return a host without port, brackets and the final dot. Clients of a connection send the same one each time."""
    try:
        return (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:
        return host


def _shown(value: str) -> str:
    return value[:_SHOWN_MAX] if value.isprintable() else ascii(value)[:_SHOWN_MAX]
