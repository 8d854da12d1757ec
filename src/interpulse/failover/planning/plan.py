"""Facts that a runbook is made of, read from both sites. Nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interpulse.failover.moves import Direction
from interpulse.failover.pair import opened_pair
from interpulse.failover.pair_config import PairConfig
from interpulse.failover.site import REAL
from interpulse.model.names import NamespaceName, TopicName
from interpulse.rules.failover_role import FailoverRole


@dataclass(frozen=True)
class Plan:
    """Facts that a runbook is made of. ``roles`` are those of the origin now, ``epoch`` is that of the switch."""

    config: PairConfig
    path: str
    """File of the pair, as the commands name it."""

    to: str
    epoch: int
    roles: Mapping[NamespaceName, FailoverRole]
    topics: Sequence[TopicName]
    kinds: Mapping[str, str]
    """Kind of each site, "ours" or "real"."""

    @property
    def origin(self) -> str:
        return self.config.other(self.to)

    @property
    def hook_values(self) -> dict[str, str]:
        """Values for the arguments of the program that moves clients."""
        url = self.config.addresses[self.to].url_of_clients
        return Direction(self.origin, self.to, url, self.config.name, self.epoch).values

    def is_real(self, site: str) -> bool:
        """Return True for a cluster of Apache Pulsar, which has no roles."""
        return self.kinds[site] == REAL

    def admin_url(self, site: str) -> str:
        return self.config.addresses[site].admin_url


async def plan_of_switch(config: PairConfig, path: str, to: str) -> Plan:
    """Return the plan of a switch that would begin now. ``path`` is the file of the pair, as commands name it.

    Raise OperationFailed if a site does not answer, and the errors of the sites.
    """
    async with opened_pair(config) as pair:
        origin = pair.site(config.other(to))
        epoch = await pair.next_epoch(await pair.last_record())
        kinds = {name: pair.site(name).kind for name in config.sites}
        return Plan(config, path, to, epoch, await origin.roles(), await origin.access.topics(), kinds)
