"""The other brokers of the cluster: links to their consoles, and their answers within a bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from interpulse.console.visit import Visit
from interpulse.console.web.addresses import page_url
from interpulse.model.brokers import ListenerAddresses, address_for
from interpulse.model.errors import PulsarError

T = TypeVar("T")

_SECONDS_MAX: Final = 5.0
_ASKED_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class BrokerLink:
    """Another broker, and its console."""

    broker: str
    url: str
    """The address of its console; empty if it has none that this visitor's browser can use."""


@dataclass(frozen=True, slots=True)
class Silent:
    """A broker that did not answer, and the reason."""

    broker: str
    reason: str


@dataclass(frozen=True, slots=True)
class Answers(Generic[T]):
    """The answers of other brokers, by broker."""

    parts: Mapping[str, T]
    silent: tuple[Silent, ...] = ()


async def links_to_others(visit: Visit, page: str) -> tuple[BrokerLink, ...]:
    """Return links to a page in the consoles of other brokers; none while the metadata store does not answer."""
    try:
        others = await _others(visit)
    except PulsarError:
        return ()
    tls = visit.visitor.tls
    urls = {name: address_for(addresses.web_url, addresses.web_url_tls, tls=tls) for name, addresses in others.items()}
    return tuple(
        BrokerLink(name, f"{url.rstrip('/')}{page_url(page)}" if url else "") for name, url in sorted(urls.items())
    )


async def answers_of(questions: Mapping[str, Callable[[], Awaitable[T]]]) -> Answers[T]:
    """Return the answers by broker. Brokers are asked concurrently, within limits of number and time."""
    permits = asyncio.Semaphore(_ASKED_AT_ONCE)

    async def ask(question: Callable[[], Awaitable[T]]) -> T | str:
        async with permits:
            try:
                async with asyncio.timeout(_SECONDS_MAX):
                    return await question()
            except TimeoutError:
                return f"no answer within {_SECONDS_MAX:g} s"
            except PulsarError as error:
                return str(error)

    answers = await asyncio.gather(*map(ask, questions.values()))
    pairs = list(zip(questions, answers, strict=True))
    parts = {name: answer for name, answer in pairs if not isinstance(answer, str)}
    return Answers(parts, tuple(Silent(name, answer) for name, answer in pairs if isinstance(answer, str)))


async def _others(visit: Visit) -> dict[str, ListenerAddresses]:
    own_id = visit.broker.broker_id
    brokers = await visit.broker.brokers()
    return {broker_id: addresses for broker_id, addresses in brokers.items() if broker_id != own_id}
