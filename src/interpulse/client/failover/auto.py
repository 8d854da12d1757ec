"""Rules of a client that changes to another site when its own is lost. They are pure: times are arguments.

Source: PIP-121 (AutoClusterFailover), and its probe by lookup in PIP-340 (SameAuthParamsLookupAutoClusterFailover).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from interpulse.client.checks import check_choice, check_least
from interpulse.client.failover.sites import Decision, Site
from interpulse.model.names import TopicName

Probe = Literal["lookup", "connect"]


class Health(Enum):
    """Outcome of one probe."""

    WELL = "well"
    REFUSED = "refused"
    """The site answers and refuses this client's credentials. It is well, but not for this client."""
    DEAD = "dead"
    """There was no answer in time, or one that says that the cluster cannot serve."""


@dataclass(frozen=True, slots=True)
class AutoFailover:
    """Change to the first site of a list that is well when the present one is lost.

    The client starts at the first site. It stays where it is while that site answers, and does not return by itself
    unless ``back_after`` is set: what was published on one site only has to be merged first.
    """

    sites: Sequence[Site | str]
    """Sites in the order of preference, at least two."""

    probe: Probe = "lookup"
    """lookup: connect with the site's credentials and look up a topic. connect: connect only."""

    probe_topic: str | None = None
    """Topic to look up while the client uses none."""

    interval_s: float = 1
    fail_after: int = 5
    """Number of failed probes in a row after which the present site counts as lost."""

    timeout_s: float = 3
    """Time limit of one probe."""

    back_after: int | None = None
    """Number of good probes in a row after which the client returns to an earlier site of the list. None: never."""

    hold_s: float = 60
    """Shortest time between two changes, except away from a site that is lost."""

    def __post_init__(self) -> None:
        if isinstance(self.sites, str) or len(self.sites) < 2:
            raise ValueError(f"sites={self.sites!r} must be a list of at least two sites")
        object.__setattr__(self, "sites", tuple(map(Site.of, self.sites)))
        if len({site.service_url for site in self.listed}) < len(self.sites):
            raise ValueError("sites: each address may be listed once")
        check_choice("probe", self.probe, Probe)
        check_least(self, 1, "fail_after")
        if self.back_after is not None:
            check_least(self, 1, "back_after")
        if not (self.interval_s > 0 and self.timeout_s > 0 and self.hold_s >= 0):
            raise ValueError("interval_s and timeout_s must be above 0, hold_s at least 0")
        if self.probe_topic is not None:
            TopicName.parse(self.probe_topic)

    @property
    def listed(self) -> tuple[Site, ...]:
        """Sites as values, in the order of preference."""
        return tuple(map(Site.of, self.sites))


@dataclass(slots=True)
class _Record:
    failures: int = 0
    successes: int = 0
    health: Health | None = None


class AutoRules:
    """Decisions of an :class:`AutoFailover` from the outcomes of probes."""

    def __init__(self, options: AutoFailover, now: float) -> None:
        """Start at the first site."""
        self.present = options.listed[0]
        self._options = options
        self._records = {site: _Record() for site in options.listed}
        self._changed_at = -math.inf
        self._answered_at = now

    @property
    def probed(self) -> Collection[Site]:
        """Sites to probe next: the present one; the others once it has failed; earlier ones if a return is possible."""
        sites = self._options.listed
        if self._records[self.present].failures:
            return sites
        earlier = sites[: sites.index(self.present)] if self._options.back_after is not None else ()
        return (*earlier, self.present)

    def note(self, outcomes: Mapping[Site, Health], now: float) -> Decision | None:
        """Record the outcomes of one round of probes. Return the change that follows from them, if any."""
        for site, health in outcomes.items():
            record = self._records[site]
            is_dead = health is Health.DEAD
            record.health = health
            record.failures = record.failures + 1 if is_dead else 0
            record.successes = record.successes + 1 if health is Health.WELL else 0
        for site in self._records.keys() - outcomes.keys():
            self._records[site] = _Record()  # what it was earlier says nothing about now
        if self._records[self.present].health is not Health.DEAD:
            self._answered_at = now
        return self._away() or self._back(now)

    def _away(self) -> Decision | None:
        failures = self._records[self.present].failures
        if failures < self._options.fail_after:
            return None
        for site in self._options.listed:
            if site != self.present and self._records[site].health is Health.WELL:
                return Decision(site, f"{failures} probes of {self.present} in a row failed")
        return None

    def _back(self, now: float) -> Decision | None:
        wanted = self._options.back_after
        if wanted is None or now - self._changed_at < self._options.hold_s:
            return None
        for site in self._options.listed[: self._options.listed.index(self.present)]:
            if self._records[site].successes >= wanted:
                return Decision(site, f"{wanted} probes of {site} in a row were answered")
        return None

    def silent_s(self, now: float) -> float:
        """Return the seconds since the present site last answered."""
        return now - self._answered_at

    def changed(self, site: Site, now: float) -> None:
        """Record that the client has changed to a site."""
        self.present = site
        self._changed_at = self._answered_at = now
        self._records = {each: _Record() for each in self._records}
