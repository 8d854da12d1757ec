"""The other brokers of the cluster: links to their consoles, and the statistics that they hold."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from interpulse.console.visit import Model, Visit
from interpulse.console.web.addresses import page_url, topic_path
from interpulse.model.brokers import address_for
from interpulse.model.errors import NotFound, PulsarError
from interpulse.model.names import TopicName
from interpulse.rules.lookup import LookupTarget

T = TypeVar("T")

_PARTS_MAX: Final = 2_000
_SECONDS_MAX: Final = 5.0
_CONCURRENT_MAX: Final = 16


async def links_to_others(visit: Visit, page: str) -> list[Model]:
    """Return links to a page in the consoles of other brokers; none while the metadata store does not answer.

    A link is empty if the broker has no console that this visitor's browser can use.
    """
    try:
        brokers = await visit.broker.brokers()
    except PulsarError:
        return []
    links = []
    for name, addresses in sorted(brokers.items()):
        url = address_for(addresses.web_url, addresses.web_url_tls, tls=visit.visitor.tls)
        if name != visit.broker.broker_id:
            links.append({"broker": name, "url": f"{url.rstrip('/')}{page_url(page)}" if url else ""})
    return links


@dataclass(frozen=True, slots=True)
class PartStats:
    """The statistics by topic, and the brokers that did not answer."""

    stats: dict[str, Any] = field(default_factory=dict)
    brokers: dict[str, str] = field(default_factory=dict)
    """The broker that sent the statistics, by topic."""
    silent: list[Model] = field(default_factory=list)
    """Brokers that did not answer, and the reasons."""
    left_out: int = 0
    """Partitions beyond the limit of one page."""


async def stats_elsewhere(visit: Visit, names: Sequence[TopicName]) -> PartStats:
    """Ask other brokers, as this broker, for the statistics of these topics.

    The caller checked that the visitor may see them. Owners load the topics, as for any statistics. Missing topics are
    left out.
    """
    owners: dict[str, LookupTarget] = {}
    owned: defaultdict[str, list[TopicName]] = defaultdict(list)
    silent: list[Model] = []
    for name in names[:_PARTS_MAX]:
        try:
            target = await visit.broker.owner_elsewhere(name)
        except PulsarError as error:
            silent.append({"broker": str(name), "reason": str(error)})
            continue
        if target is not None:
            owner = target.broker_id or target.web_url
            owners[owner] = target
            owned[owner].append(name)

    async def ask(owner: str) -> dict[str, Any]:
        stats = {}
        for name in owned[owner]:
            try:
                stats[str(name)] = await visit.broker.ask_owner(owners[owner], topic_path(name, "/stats"))
            except NotFound:  # a partition without a record, or deleted meanwhile
                continue
        return stats

    answers = await _ask_all({owner: partial(ask, owner) for owner in owned})
    parts = {owner: answer for owner, answer in answers.items() if not isinstance(answer, str)}
    refusals = [{"broker": owner, "reason": answer} for owner, answer in answers.items() if isinstance(answer, str)]
    return PartStats(
        {name: stats for part in parts.values() for name, stats in part.items()},
        {name: owner for owner, part in parts.items() for name in part},
        silent[:1] + refusals,
        max(0, len(names) - _PARTS_MAX),
    )


async def _ask_all(questions: Mapping[str, Callable[[], Awaitable[T]]]) -> dict[str, T | str]:
    """Return the answer of each broker, or its reason for none. Asks concurrently, within limits."""
    permits = asyncio.Semaphore(_CONCURRENT_MAX)

    async def ask(question: Callable[[], Awaitable[T]]) -> T | str:
        async with permits:
            try:
                async with asyncio.timeout(_SECONDS_MAX):
                    return await question()
            except TimeoutError:
                return f"no answer within {_SECONDS_MAX:g} s"
            except PulsarError as error:
                return str(error)

    return dict(zip(questions, await asyncio.gather(*map(ask, questions.values())), strict=True))
