"""State of a pair: roles, copies that are under way, and the last operation. Nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from interpulse.failover.control_topic import OPERATION, read_control_topic
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.pair import is_unfinished, site_of
from interpulse.failover.pair_config import PairConfig
from interpulse.failover.reporting.reports import AtStake
from interpulse.failover.reporting.stored import stake_of
from interpulse.failover.site import Site, SiteAccess
from interpulse.model.errors import PulsarError
from interpulse.rules.failover_role import FailoverRole, Role


@dataclass(frozen=True)
class SiteStatus:
    """One site. With a ``problem`` nothing else is known of it."""

    name: str
    cluster: str
    problem: str = ""
    roles: Mapping[str, FailoverRole] = field(default_factory=dict)
    topics: int = 0
    closed: Mapping[str, str] = field(default_factory=dict)
    """Topic-partitions that are not copied to the other site, with the reason."""
    pending: Mapping[str, str] = field(default_factory=dict)
    """Topic-partitions whose acknowledgements are not exchanged, with the reason."""
    behind: int | None = None
    """Messages that wait to be copied to the other site, as the job estimates; None if it is not known."""

    @property
    def serves(self) -> bool:
        return bool(self.roles) and all(role.role is Role.ACTIVE for role in self.roles.values())

    def to_json(self) -> dict[str, Any]:
        """Return the members that ``-o json`` prints."""
        roles = {name: str(role) for name, role in self.roles.items()}
        return {
            "site": self.name,
            "cluster": self.cluster,
            "problem": self.problem or None,
            "roles": roles,
            "topics": self.topics,
            "behindMessages": self.behind,
            "notCopied": dict(self.closed),
            "notSettled": dict(self.pending),
        }


@dataclass(frozen=True)
class PairStatus:
    """Both sites and the record of the last operation."""

    name: str
    sites: Sequence[SiteStatus]
    operation: Mapping[str, Any] | None
    at_stake: AtStake | None = None
    stake_problem: str = ""
    """Reason why it is not known what is at stake."""

    @property
    def outcome(self) -> Outcome:
        """Return DONE if one site serves and a switch could begin."""
        if any(site.problem for site in self.sites):
            return Outcome.UNREACHABLE
        is_calm = not any(site.closed or site.pending for site in self.sites) and not self.is_unfinished
        return Outcome.DONE if is_calm and sum(site.serves for site in self.sites) == 1 else Outcome.NOTICED

    @property
    def is_unfinished(self) -> bool:
        """Return True if an operation was started and has not ended."""
        return is_unfinished(self.operation)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``-o json`` prints."""
        sites = [site.to_json() for site in self.sites]
        stake = None if self.at_stake is None else self.at_stake.to_json()
        state = {"pair": self.name, "sites": sites, "operation": self.operation, "outcome": self.outcome.name}
        return {**state, "atStake": stake, "atStakeUnknown": self.stake_problem or None}


async def pair_status(config: PairConfig) -> PairStatus:
    """Return the state of a pair, as far as its sites answer."""
    async with AsyncExitStack() as closing:
        opened: dict[str, SiteAccess] = {}
        for name in config.sites:
            opened[name] = SiteAccess.of(config, name)
            closing.push_async_callback(opened[name].close)
        sites: list[SiteStatus] = []
        records: list[Mapping[str, Any]] = []
        for name, access in opened.items():
            try:
                site = await site_of(access, config.name)
                sites.append(await _status(site))
                found = await read_control_topic(access, config.control_topic)
                records += [found[OPERATION]] if OPERATION in found else []
            except (OperationFailed, PulsarError) as error:
                sites.append(SiteStatus(name, access.cluster, str(error)))
        newest = max(records, key=lambda record: str(record["at"]), default=None)
        return PairStatus(config.name, sites, newest, *await _stake(config, sites, opened))


async def _stake(
    config: PairConfig, sites: Sequence[SiteStatus], opened: Mapping[str, SiteAccess]
) -> tuple[AtStake | None, str]:
    """Return what is at stake at the site that does not answer, else at the one that serves; or why that is unknown."""
    site = next((each for each in sites if each.problem), None) or next((each for each in sites if each.serves), None)
    if site is None:
        return None, "no site serves"
    other = config.other(site.name)
    if any(each.problem for each in sites if each.name == other):
        return None, f"{other} does not answer"
    try:
        found = await stake_of(site.name, opened[other], config)
    except (PulsarError, ValueError) as error:
        return None, str(error)
    return found, "" if found else f"no report about {site.name}; interpulse failover watch makes them"


async def _status(site: Site) -> SiteStatus:
    other, access = site.access.other_cluster, site.access
    return SiteStatus(
        access.name,
        access.cluster,
        roles={str(name): role for name, role in (await site.roles()).items()},
        topics=len(await access.topics()),
        closed=await site.closed_ways(other),
        pending=await site.pending_ways(other),
        behind=await site.behind(other),
    )
