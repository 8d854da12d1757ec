"""Configuration file of a pair of clusters (TOML): the two sites, their namespaces, and how clients are moved.

Unknown tables and keys are refused with the nearest known ones. All problems are reported together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.cluster_address import ClusterAddress, address_problems, sameness_problems
from interpulse.replication.setting_values import parse_service_url
from interpulse.replication.toml_tables import TableReader, load_tables
from interpulse.rules.failover_role import HOLD_SECONDS_MAX

REDIRECT: Final = "redirect"
FILE: Final = "file"
HOOK: Final = "hook"
_MOVES: Final = (REDIRECT, FILE, HOOK)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_TABLES: Final = ("pair", "limits", "clients")


class PairConfigError(ValueError):
    """A file that cannot be used. The message lists every problem."""


@dataclass(frozen=True, kw_only=True)
class SiteAddress(ClusterAddress):
    """One site of the pair. Clients are sent to ``client_url``; None: to ``service_url``."""

    client_url: str | None = None

    @property
    def url_of_clients(self) -> str:
        return self.client_url or self.service_url


@dataclass(frozen=True, kw_only=True)
class PairTable:
    """Keys of ``[pair]``. The first of the ``sites`` serves until someone switches.

    ``control`` is the namespace of the control topic; None: the first one of the pair.
    """

    name: str
    sites: tuple[str, ...]
    namespaces: tuple[str, ...]
    state: str
    control: str | None = None


@dataclass(frozen=True, kw_only=True)
class PairLimits:
    """Limits of the steps and of the preflight. Those that end in ``_s`` are seconds."""

    fence_s: int = 30
    """Time for which the fence may take to hold everywhere."""
    drain_s: int = 600
    """Time after which a switch that has not drained is taken back."""
    settle_s: int = 5
    """Time without a new acknowledgement after which subscriptions are settled."""
    settle_max_s: int = 60
    """Time after which a switch goes on although consumers still acknowledge."""
    hook_s: int = 60
    """Time after which the program that moves clients is killed."""
    hold_s: int = 120
    """Time for which consumers may be held while a tail is merged with its acknowledgements."""
    report_interval_ms: int = 1000
    """Milliseconds between two reports of what is not copied yet."""
    probes: int = 5
    """Number of probes that a site must not answer before it counts as lost."""
    probe_s: int = 2
    """Time for each probe, and between two of them."""
    lag_messages_max: int = 100_000
    """Number of messages that may wait to be copied before the preflight warns of a topic-partition."""
    requests_per_second: int = 200
    """Rate of the preflight's requests to each site."""


@dataclass(frozen=True, kw_only=True)
class ClientMoves:
    """Ways to move clients to the other site, in order.

    ``file`` gets the JSON of Java's ControlledClusterFailover. ``hook`` is a program with its arguments, in which
    ``{to}``, ``{from}``, ``{client_url}``, ``{pair}`` and ``{epoch}`` are replaced.
    """

    move: tuple[str, ...] = (REDIRECT,)
    file: str | None = None
    hook: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PairConfig:
    """Content of the whole file."""

    name: str
    sites: tuple[str, str]
    namespaces: tuple[NamespaceName, ...]
    state: Path
    control: NamespaceName
    addresses: Mapping[str, SiteAddress]
    limits: PairLimits = field(default_factory=PairLimits)
    clients: ClientMoves = field(default_factory=ClientMoves)

    def other(self, site: str) -> str:
        """Return the name of the other site."""
        return self.sites[1] if site == self.sites[0] else self.sites[0]

    @property
    def control_topic(self) -> TopicName:
        """Topic of the lease and of the record of the last operation, on both sites."""
        return TopicName.parse(f"persistent://{self.control}/interpulse-failover-{self.name}")


def load_pair_config(path: str) -> PairConfig:
    """Read a file. Raise PairConfigError that names it."""
    return load_tables(path, parse_pair_config, PairConfigError)


def parse_pair_config(body: Mapping[str, Any]) -> PairConfig:
    """Check the parsed file. Raise PairConfigError that lists every problem."""
    reader = TableReader(strings={"control": NamespaceName.parse, "client_url": parse_service_url, "name": _check_name})
    pair = reader.section(PairTable, reader.table(body, "pair"), "pair")
    names = _site_names(reader, pair)
    reader.refuse_unknown(body, {*_TABLES, *names}, "table")
    limits = reader.section(PairLimits, reader.table(body, "limits"), "limits")
    clients = reader.section(ClientMoves, reader.table(body, "clients"), "clients")
    addresses = _addresses(reader, body, names)
    if pair is not None and not pair.namespaces:
        reader.problems.append("[pair] namespaces is empty: name at least one")
    if limits is not None and limits.hold_s > HOLD_SECONDS_MAX:
        reader.problems.append(f"[limits] hold_s: {limits.hold_s} is more than {HOLD_SECONDS_MAX}, an hour")
    if clients is not None:
        reader.problems += _move_problems(clients)
    if reader.problems:
        raise PairConfigError("; ".join(reader.problems))
    namespaces = tuple(map(NamespaceName.parse, pair.namespaces))
    return PairConfig(
        name=pair.name,
        sites=(names[0], names[1]),
        namespaces=namespaces,
        state=Path(pair.state),
        control=NamespaceName.parse(pair.control) if pair.control else namespaces[0],
        addresses=addresses,
        limits=limits,
        clients=clients,
    )


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is part of the names of topics and producers: use letters, digits, _ and -")


def _site_names(reader: TableReader, pair: PairTable | None) -> tuple[str, ...]:
    if pair is None:
        return ()
    names = pair.sites
    if len(set(names)) != 2 or len(names) != 2 or not all(map(_NAME.fullmatch, names)) or set(names) & {*_TABLES}:
        reader.problems.append(
            f"[pair] sites = {list(names)}: name two different sites with letters, digits, _ and -, "
            f"other than {', '.join(_TABLES)}"
        )
        return ()
    return names


def _addresses(reader: TableReader, body: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, SiteAddress]:
    addresses: dict[str, SiteAddress] = {}
    for name in names:
        address = reader.section(SiteAddress, reader.table(body, name), name)
        if address is not None:
            addresses[name] = address
            reader.problems += address_problems(name, address)
    if len(addresses) == 2:
        reader.problems += sameness_problems((names[0], names[1]), addresses[names[0]], addresses[names[1]])
    return addresses


def _move_problems(clients: ClientMoves) -> list[str]:
    problems = [
        f"[clients] move: {way!r} is not one of {', '.join(_MOVES)}" for way in clients.move if way not in _MOVES
    ]
    for way, value in ((FILE, clients.file), (HOOK, clients.hook)):
        if (way in clients.move) != bool(value):
            problems.append(f'[clients] {way} and move = ["{way}"] belong together: write both or neither')
    return problems
