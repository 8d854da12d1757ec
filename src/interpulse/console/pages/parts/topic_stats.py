"""The statistics of a topic or its partitions that other brokers hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from interpulse.console.pages.parts.other_brokers import Silent, answers_of
from interpulse.console.visit import Visit
from interpulse.console.web.addresses import topic_path
from interpulse.model.errors import NotFound, PulsarError
from interpulse.model.names import TopicName
from interpulse.rules.lookup import LookupTarget

_PARTS_MAX: Final = 2_000


@dataclass(frozen=True, slots=True)
class PartStats:
    """The statistics by topic, and the brokers that did not answer."""

    stats: dict[str, Any] = field(default_factory=dict)
    brokers: dict[str, str] = field(default_factory=dict)
    """The broker that sent the statistics, by topic."""
    silent: tuple[Silent, ...] = ()
    left_out: int = 0
    """Partitions beyond the limit of one page."""


async def stats_elsewhere(visit: Visit, names: Sequence[TopicName]) -> PartStats:
    """Ask other brokers, as this broker, for the statistics of these topics.

    The caller checked that the visitor may see them. Owners load the topics, as for any statistics. Missing topics are
    left out.
    """
    asked = names[:_PARTS_MAX]
    owners: dict[str, LookupTarget] = {}
    owned: defaultdict[str, list[TopicName]] = defaultdict(list)
    silent: list[Silent] = []
    for name in asked:
        try:
            target = await visit.broker.owner_elsewhere(name)
        except PulsarError as error:
            silent.append(Silent(str(name), str(error)))
            continue
        if target is not None:
            owner = target.broker_id or target.web_url
            owners[owner] = target
            owned[owner].append(name)

    async def ask(owner: str) -> dict[str, Any]:
        found = {}
        for name in owned[owner]:
            try:
                found[str(name)] = await visit.broker.ask_owner(owners[owner], topic_path(name, "/stats"))
            except NotFound:  # a partition without a record, or deleted meanwhile
                continue
        return found

    answers = await answers_of({owner: partial(ask, owner) for owner in owned})
    return PartStats(
        {name: stats for part in answers.parts.values() for name, stats in part.items()},
        {name: owner for owner, part in answers.parts.items() for name in part},
        (*silent[:1], *answers.silent),
        len(names) - len(asked),
    )
