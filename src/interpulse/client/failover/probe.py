"""Questions to a site: is it well, and for this client?"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Final

from interpulse.client.config import ClientConfig
from interpulse.client.failover.auto import Health
from interpulse.client.failover.sites import Site
from interpulse.client.lookup.binary_lookup import BinaryLookup
from interpulse.client.lookup.http_lookup import HttpLookup
from interpulse.client.lookup.lookup import Lookup
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.client.transport.issued_tokens import IssuedTokens
from interpulse.model.errors import (
    AuthenticationError,
    AuthorizationError,
    NotConnected,
    NotFound,
    PulsarError,
    TooManyRequests,
)
from interpulse.model.names import TopicName

_REFUSALS: Final = (AuthenticationError, AuthorizationError)
_WELL: Final = (NotFound, TooManyRequests)
"""Answers of a cluster that serves: a missing topic, and one question too many."""
_PLACEHOLDER: Final = TopicName.parse("persistent://public/default/interpulse-probe")
"""Topic to look up over HTTP if there is no other. It need not exist."""


def health_after(failure: PulsarError | None) -> Health:
    """Return the health of a site that answered a probe with a failure, or with None of it."""
    if failure is None or isinstance(failure, _WELL):
        return Health.WELL
    return Health.REFUSED if isinstance(failure, _REFUSALS) else Health.DEAD


class SiteProbe:
    """Probe of one site over connections of its own, with the site's credentials.

    A connection is used again while it answers. After a failure the next probe connects again, to the next host of the
    service URL first.
    """

    def __init__(self, config: ClientConfig, site: Site, *, timeout_s: float) -> None:
        own = site.applied_to(config)
        hosts = max(len(own.url.brokers), 1)
        limit_ms = max(int(timeout_s * 1000), 1)
        self._config = replace(
            own,
            tracing=False,
            metrics=False,
            connect_timeout_ms=max(limit_ms // hosts, 1),
            lookup_timeout_ms=limit_ms,
            operation_timeout_ms=limit_ms,
            backoff_initial_ms=2 * limit_ms,  # longer than a probe: a question is not repeated
            backoff_max_ms=2 * limit_ms,
        )
        self._timeout_s = timeout_s
        self._issued = IssuedTokens.of(self._config.credentials, self._config.tls)
        self._opened: tuple[Lookup, ConnectionPool] | None = None

    async def health(self, topic: TopicName | None) -> Health:
        """Connect and look up ``topic``, or connect only if it is None. Return the outcome within the time limit."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._ask(topic)
            return Health.WELL
        except TimeoutError:
            health = Health.DEAD
        except PulsarError as failure:
            health = health_after(failure)
        if health is Health.DEAD:
            await self.close()
            self._config = _from_next_host(self._config)
        return health

    async def _ask(self, topic: TopicName | None) -> None:
        if self._opened is None:
            pool = ConnectionPool(self._config, self._issued)
            self._opened = (HttpLookup if self._config.url.is_http else BinaryLookup)(self._config, pool), pool
        lookup, pool = self._opened
        if isinstance(lookup, HttpLookup):
            await pool.get(await lookup.broker(topic or _PLACEHOLDER))
            return
        await self._connect(lookup)
        if topic is not None:
            await lookup.broker(topic)

    async def _connect(self, lookup: Lookup) -> None:
        """Connect to the first host that answers. If all refuse, raise the last refusal without waiting."""
        for _ in self._config.url.brokers[1:]:
            with suppress(NotConnected):
                await lookup.service_connection()
                return
        await lookup.service_connection()

    async def close(self) -> None:
        """Close the connections. A later probe opens others."""
        opened, self._opened = self._opened, None
        if opened is not None:
            for each in opened:
                await each.close()


def _from_next_host(config: ClientConfig) -> ClientConfig:
    first, *others = config.url.brokers or (None,)
    if first is None or not others:
        return config
    scheme = "pulsar+ssl" if config.url.tls else "pulsar"
    hosts = [str(broker).partition("://")[2] for broker in (*others, first)]
    return replace(config, service_url=f"{scheme}://{','.join(hosts)}")
