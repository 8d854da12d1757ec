"""Reading of a cluster's topics and their statistics, a few requests at a time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from interpulse.cli.support.running import failure
from interpulse.model.errors import AuthorizationError, NotConnected, NotFound, OperationTimeout, PulsarError
from interpulse.model.names import NamespaceName

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_QUESTIONS_AT_ONCE: Final = 8
_LISTED_EACH_ROUNDS: Final = 10


@dataclass(frozen=True, slots=True)
class Observation:
    """Result of one round of requests."""

    stats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Statistics by topic."""

    matching: int = 0
    """Number of topics whose names match; statistics are read for the first of them only."""

    problems: Sequence[str] = ()
    """One sentence for each kind of request that failed."""


async def namespaces_of(admin: AdminClient) -> list[str]:
    """Return the namespaces that the caller may list, without those of the brokers' own health checks."""
    names: list[str] = []
    for tenant in await admin.tenants.list():
        try:
            names += await admin.namespaces.list(tenant)
        except AuthorizationError:
            continue
    return [name for name in names if not NamespaceName.parse(name).is_heartbeat]


class ClusterSurvey:
    """Reader of the topics of some namespaces, or of all, whose names match ``wanted``."""

    def __init__(
        self, admin: AdminClient, namespaces: Sequence[str], *, wanted: re.Pattern[str] | None, topics_max: int
    ) -> None:
        self.web_url = admin.web_url
        self._admin = admin
        self._namespaces = namespaces
        self._wanted = wanted
        self._topics_max = topics_max
        self._names: list[str] = []
        self._rounds = 0

    async def look(self) -> Observation:
        """Read the statistics once.

        The list of topics is read again every ten rounds. Raise PulsarError if it cannot be.
        """
        if self._rounds % _LISTED_EACH_ROUNDS == 0:
            self._names = await self._listed()
        self._rounds += 1
        stats: dict[str, Mapping[str, Any]] = {}
        problems: dict[type[PulsarError], str] = {}
        waiting = iter(self._names[: self._topics_max])
        await asyncio.gather(*(self._ask(waiting, stats, problems) for _ in range(_QUESTIONS_AT_ONCE)))
        return Observation(stats, len(self._names), list(problems.values()))

    async def _listed(self) -> list[str]:
        names: list[str] = []
        for namespace in self._namespaces or await namespaces_of(self._admin):
            names += await self._admin.topics.list(namespace)
        return sorted(name for name in names if self._wanted is None or self._wanted.search(name))

    async def _ask(
        self, waiting: Iterator[str], stats: dict[str, Mapping[str, Any]], problems: dict[type[PulsarError], str]
    ) -> None:
        for name in waiting:
            try:
                stats[name] = await self._admin.topics.stats(name)
            except NotFound:
                continue  # it went meanwhile
            except (NotConnected, OperationTimeout) as error:
                problems.setdefault(type(error), failure(error).message)
                for _ in waiting:  # the others would have no answer either
                    pass
            except PulsarError as error:
                problems.setdefault(type(error), f"{name}: {failure(error).message}")
