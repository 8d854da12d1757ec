"""The broker's half of a data connection, opened only after every check against use as an open relay."""

from __future__ import annotations

import asyncio
import logging
import socket
from urllib.parse import urlsplit

from interpulse.client.tls import KeptContext, TlsOptions
from interpulse.model.errors import PulsarError
from interpulse.proxy.brokers import Brokers
from interpulse.proxy.targets import TargetRules

_logger = logging.getLogger(__name__)


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
