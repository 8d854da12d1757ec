"""The two sites of a pair, opened, and the operations on them that their control topics and directory know."""

from __future__ import annotations

import getpass
import os
import secrets
import socket
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from interpulse.clock import iso_time, now_ms
from interpulse.failover.control_topic import OPERATION, read_control_topic
from interpulse.failover.journal import Journal, Operation, path_of
from interpulse.failover.our_site import OurSite
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.pair_config import PairConfig
from interpulse.failover.real_site import RealSite
from interpulse.failover.site import OURS, Site, SiteAccess
from interpulse.failover.switch import highest_epoch
from interpulse.model.errors import PulsarError
from interpulse.replication.connect import misnamed

SWITCH: Final = "switch"
TAKEOVER: Final = "takeover"
RECONCILE: Final = "reconcile"
SUPERSEDED: Final = "SUPERSEDED"
"""Outcome of an operation that a later one replaced."""


@dataclass
class Pair:
    """Both sites of a pair, by name."""

    config: PairConfig
    sites: Mapping[str, Site]

    def site(self, name: str) -> Site:
        """Return a site. Raise OperationFailed for a name that is none of the pair."""
        if name not in self.sites:
            raise OperationFailed(
                f"{name} is no site of {self.config.name}: name {' or '.join(self.config.sites)}", Outcome.REFUSED
            )
        return self.sites[name]

    async def last_record(self) -> Mapping[str, Any] | None:
        """Return the newest record of an operation on the control topics of both sites; None without one."""
        found = [await read_control_topic(site.access, self.config.control_topic) for site in self.sites.values()]
        records = [each[OPERATION] for each in found if OPERATION in each]
        return newest_record(records)

    async def next_epoch(self, record: Mapping[str, Any] | None) -> int:
        """Return an epoch above all that any site has seen."""
        roles = [await site.roles() for site in self.sites.values()]
        return 1 + max(highest_epoch(*roles), int(record["epoch"]) if record else 0)


@asynccontextmanager
async def opened_pair(config: PairConfig) -> AsyncGenerator[Pair]:
    """Open both sites. Raise OperationFailed if one does not answer, or is another cluster than the file says."""
    async with AsyncExitStack() as closing:
        sites: dict[str, Site] = {}
        for name in config.sites:
            access = SiteAccess.of(config, name)
            closing.push_async_callback(access.close)
            sites[name] = await site_of(access, config.name)
            closing.push_async_callback(sites[name].close)
        yield Pair(config, sites)


async def site_of(access: SiteAccess, pair: str) -> Site:
    """Return a site by the kind of its cluster. Raise OperationFailed if it does not answer, or is another cluster."""
    try:
        kind = await access.kind()
        problem = await misnamed(access.admin, access.cluster, access.address.admin_url)
    except PulsarError as error:
        raise OperationFailed(f"{access.name} ({access.address.shown}): {error}", Outcome.UNREACHABLE) from error
    if problem is not None:
        raise OperationFailed(f"[{access.name}] cluster: {problem}", Outcome.REFUSED)
    return OurSite(access) if kind == OURS else RealSite(access, pair)


def holder() -> str:
    """Return the user, host and process of this command, for others that want the lease."""
    return f"{getpass.getuser()}@{socket.gethostname()}, process {os.getpid()}"


def new_operation(kind: str, to: str, epoch: int) -> Operation:
    """Return an operation that begins now. Its id sorts by time."""
    began = iso_time(now_ms())
    stamp = "".join(filter(str.isalnum, began.partition(".")[0]))
    return Operation(f"{stamp}-{secrets.token_hex(3)}", kind, to, epoch, began, holder())


@asynccontextmanager
async def opened_survivor(config: PairConfig, name: str) -> AsyncGenerator[Pair]:
    """Open one site of a pair whose other one is lost. Raise OperationFailed as `opened_pair`."""
    access = SiteAccess.of(config, name)
    async with AsyncExitStack() as closing:
        closing.push_async_callback(access.close)
        site = await site_of(access, config.name)
        closing.push_async_callback(site.close)
        yield Pair(config, {name: site})


async def journal_of(pair: Pair, kind: str, to: str, *, is_resumed: bool) -> Journal:
    """Return the journal of the operation that is unfinished, or of a new one. The lease is held.

    A takeover supersedes what the loss of a site has interrupted.

    Raise OperationFailed for another unfinished operation, and for one of another machine unless it ``is_resumed``.
    """
    record = await pair.last_record()
    journal = unfinished_here(pair, record)
    if kind == TAKEOVER and journal is not None and journal.operation.kind != TAKEOVER:
        journal.end(SUPERSEDED, iso_time(now_ms()))
        journal = None
    if journal is None and record is not None and _goes_on(pair, kind, record):
        if not is_resumed:
            raise OperationFailed(f"{_shown(record)}: go on with --resume, or take it back with undo", Outcome.REFUSED)
        journal = Journal.taken_over(pair.config.state, record)
    if journal is None:
        return Journal.create(pair.config.state, new_operation(kind, to, await pair.next_epoch(record)))
    unfinished = journal.operation
    if (unfinished.kind, unfinished.to) != (kind, to):
        again = RECONCILE if unfinished.kind == RECONCILE else f"{unfinished.kind} --to {unfinished.to}"
        remedy = f"give {again} again" if unfinished.kind == RECONCILE else f"give {again} again, or undo,"
        raise OperationFailed(
            f"The {unfinished.kind} to {unfinished.to} of {unfinished.began} is unfinished: {remedy} before another "
            f"{kind}",
            Outcome.REFUSED,
        )
    return journal


def newest_record(records: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the newest of the records at several sites; None without one.

    A later operation has a higher epoch. Times order the events of one operation alone: clocks of machines differ.
    """
    return max(records, key=lambda each: (int(each["epoch"]), "outcome" in each, str(each["at"])), default=None)


def is_unfinished(record: Mapping[str, Any] | None) -> bool:
    """Return True for the record of an operation that has not ended."""
    return record is not None and "outcome" not in record


def unfinished_here(pair: Pair, record: Mapping[str, Any] | None) -> Journal | None:
    """Return the unfinished journal of this machine, unless ``record`` says that it was finished elsewhere.

    A journal whose operation has a lower epoch than the record, or the same one, which it did not come to record, is
    superseded.
    """
    journal = Journal.unfinished(pair.config.state)
    if journal is None or record is None:
        return journal
    is_same = record["id"] == journal.operation.id
    if is_unfinished(record) if is_same else int(record["epoch"]) < journal.operation.epoch:
        return journal
    journal.end(str(record["outcome"]) if is_same else SUPERSEDED, iso_time(now_ms()))
    return None


def _goes_on(pair: Pair, kind: str, record: Mapping[str, Any]) -> bool:
    """Return True for the record of an unfinished operation of another machine that this kind does not supersede."""
    is_superseded = kind == TAKEOVER and record["kind"] != TAKEOVER
    return is_unfinished(record) and not is_superseded and not _is_ended_here(pair, record)


def _is_ended_here(pair: Pair, record: Mapping[str, Any]) -> bool:
    """Return True if the journal of this machine has the end of an operation that was not stored at the sites."""
    path = path_of(pair.config.state, str(record["id"]))
    return path.exists() and Journal(path).outcome is not None


def _shown(record: Mapping[str, Any]) -> str:
    operation = Operation.from_json(record)
    return f"The {operation.kind} to {operation.to} that {operation.holder} began at {operation.began} is unfinished"
