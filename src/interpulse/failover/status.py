"""State of a pair: roles, copies that are under way, and the last operation. Nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from interpulse.failover.control_topic import OPERATION, read_control_topic
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.pair import is_unfinished, newest_record, site_of
from interpulse.failover.pair_config import PairConfig
from interpulse.failover.reporting.reports import AtStake
from interpulse.failover.reporting.stored import stake_of
from interpulse.failover.site import Site, SiteAccess
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName
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
    operation_problem: str = ""
    """Reason why the record of an operation cannot be read."""
    at_stake: AtStake | None = None
    stake_problem: str = ""
    """Reason why it is not known what is at stake."""

    @property
    def outcome(self) -> Outcome:
        """Return DONE if one site serves and a switch could begin."""
        if any(site.problem for site in self.sites):
            return Outcome.UNREACHABLE
        is_clear = not (self.is_unfinished or self.operation_problem)
        is_calm = is_clear and not any(site.closed or site.pending for site in self.sites)
        return Outcome.DONE if is_calm and sum(site.serves for site in self.sites) == 1 else Outcome.NOTICED

    @property
    def is_unfinished(self) -> bool:
        """Return True if an operation was started and has not ended."""
        return is_unfinished(self.operation)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``-o json`` prints."""
        sites = [site.to_json() for site in self.sites]
        stake = None if self.at_stake is None else self.at_stake.to_json()
        problem = self.operation_problem or None
        state = {"pair": self.name, "sites": sites, "operation": self.operation, "operationUnknown": problem}
        return {**state, "outcome": self.outcome.name, "atStake": stake, "atStakeUnknown": self.stake_problem or None}


async def pair_status(config: PairConfig) -> PairStatus:
    """Return the state of a pair, as far as its sites answer."""
    async with AsyncExitStack() as closing:
        opened: dict[str, SiteAccess] = {}
        for name in config.sites:
            opened[name] = SiteAccess.of(config, name)
            closing.push_async_callback(opened[name].close)
        sites = [await _status_or_problem(access, config.name) for access in opened.values()]
        answering = [opened[site.name] for site in sites if not site.problem]
        operation = await _operation(answering, config.control_topic)
        return PairStatus(config.name, sites, *operation, *await _stake(config, sites, opened))


async def _status_or_problem(access: SiteAccess, pair: str) -> SiteStatus:
    try:
        return await _status(await site_of(access, pair))
    except (OperationFailed, PulsarError) as error:
        return SiteStatus(access.name, access.cluster, str(error))


async def _operation(sites: Sequence[SiteAccess], topic: TopicName) -> tuple[Mapping[str, Any] | None, str]:
    """Return the newest record of an operation, and the reason why one cannot be read."""
    records: list[Mapping[str, Any]] = []
    problems: list[str] = []
    for access in sites:
        try:
            found = await read_control_topic(access, topic)
            records += [found[OPERATION]] if OPERATION in found else []
        except (OperationFailed, PulsarError) as error:
            problems.append(str(error))
    return newest_record(records), "; ".join(problems)


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
