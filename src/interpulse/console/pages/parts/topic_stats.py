"""The statistics of a topic or its partitions among several brokers: what is loaded here, and what their owners say."""

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

__all__ = ["PartStats", "stats_elsewhere"]

_PARTS_MAX: Final = 2_000


@dataclass(frozen=True, slots=True)
class PartStats:
    """Of the parts that other brokers have, by name, and of those that could not be asked."""

    stats: dict[str, Any] = field(default_factory=dict)
    brokers: dict[str, str] = field(default_factory=dict)
    """Who said it."""
    silent: tuple[Silent, ...] = ()
    left_out: int = 0
    """Parts that were not asked about, as there are too many."""


async def stats_elsewhere(visit: Visit, names: Sequence[TopicName]) -> PartStats:
    """For who may see the statistics of the topic: brokers are asked as this one. Their owners load what they are asked
    about, as for any statistics; what does not exist is left out."""
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
            except NotFound:  # a partition without a record, or one that went
                continue
        return found

    told = await answers_of({owner: partial(ask, owner) for owner in owned})
    return PartStats(
        {name: stats for part in told.parts.values() for name, stats in part.items()},
        {name: owner for owner, part in told.parts.items() for name in part},
        (*silent[:1], *told.silent),
        len(names) - len(asked),
    )
