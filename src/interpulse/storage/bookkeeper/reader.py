"""Entries of a ledger, read from its bookies and checked; another bookie is asked if one lacks them.

No entry beyond the last acknowledged one is read: it may vanish when the ledger is recovered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, Protocol

from interpulse.storage.bookkeeper.bookies import Bookies
from interpulse.storage.bookkeeper.connection import Reply
from interpulse.storage.bookkeeper.errors import (
    BookieAway,
    Code,
    EntryDamaged,
    EntryUnreachable,
    LedgerUnusable,
    WrongDigest,
    meaning,
)
from interpulse.storage.bookkeeper.packets import Digest, Packet, digest_of
from interpulse.storage.bookkeeper.protocol import LAST_ENTRY
from interpulse.storage.bookkeeper.records import NO_ENTRY_YET, LedgerMetadata

log = logging.getLogger(__name__)

_NEXT_AFTER_S: Final = 1.0  # without an answer: the next bookie is asked as well
_AT_ONCE_MAX: Final = 100  # single reads
NOT_THERE: Final = (Code.NO_LEDGER, Code.NO_ENTRY)
"""Answers of a bookie that certainly lacks an entry."""


class Readable(Protocol):
    """The readable part of a ledger."""

    @property
    def ledger_id(self) -> int:
        """The id of the ledger."""

    @property
    def metadata(self) -> LedgerMetadata:
        """The bookies that have the entries."""

    @property
    def last_confirmed(self) -> int:
        """The last entry that may be read, -1 if there is none."""


@dataclass(frozen=True, slots=True)
class ReadableLedger:
    """A ledger that this process does not write."""

    ledger_id: int
    metadata: LedgerMetadata
    last_confirmed: int


async def ask_last_confirmed(
    ledger_id: int, bookie_id: str, digest: Digest, bookies: Bookies, *, fence: bool = False
) -> int | None:
    """Return the last entry that this bookie knows to be acknowledged, -1 for none, None without an answer.

    With ``fence`` the bookie first stops accepting entries of the ledger's writer. Raise `LedgerUnusable` if the ledger
    has another password.
    """
    try:
        connection = await bookies.connect(bookie_id)
    except BookieAway:
        return None
    reply = await connection.read(ledger_id, LAST_ENTRY, fence_key=digest.master_key if fence else b"")
    if reply.code == Code.UNAUTHORIZED:
        raise LedgerUnusable(ledger_id, f"bookie {bookie_id} refuses: {meaning(reply.code)}")
    if reply.code != Code.OK:
        return NO_ENTRY_YET if reply.code in NOT_THERE else None
    try:
        return digest.open(reply.packets[0], ledger_id).last_confirmed
    except WrongDigest as error:
        log.error("last entry damaged bookie=%s ledger=%d problem=%s", bookie_id, ledger_id, error)
        return NO_ENTRY_YET


class LedgerReader:
    """Reads one ledger, which this process may be writing."""

    __slots__ = ("_bookies", "_digest", "_preferred", "_source")

    def __init__(self, source: Readable, bookies: Bookies) -> None:
        self._source = source
        self._bookies = bookies
        self._digest = digest_of(source.metadata.digest, source.metadata.password)
        self._preferred = ""  # the bookie that answered last, which has read ahead

    @property
    def ledger_id(self) -> int:
        """The id of the ledger."""
        return self._source.ledger_id

    @property
    def metadata(self) -> LedgerMetadata:
        """The bookies that have the entries, and the state of the ledger."""
        return self._source.metadata

    @property
    def last_confirmed(self) -> int:
        """The last entry that may be read, -1 if there is none."""
        return self._source.last_confirmed

    async def read(self, first: int, *, entries_max: int, bytes_max: int) -> list[bytes]:
        """Return payloads from an entry on: at least one, and not much more than ``bytes_max``.

        Raise `EntryUnreachable` while bookies are down, `EntryDamaged` if the entry is lost, ValueError beyond
        `last_confirmed`.
        """
        last = min(self.last_confirmed, first + max(entries_max, 1) - 1)
        if not 0 <= first <= last:
            raise ValueError(f"ledger {self.ledger_id} is readable up to entry {self.last_confirmed}, not {first}")
        batch = await self._read_batch(first, last, bytes_max)
        if batch:
            return batch
        payloads = [(await self.read_entry(first)).payload]
        size = len(payloads[0])
        while first + len(payloads) <= last and size < bytes_max:
            # as many in parallel as their average size suggests
            fitting = (bytes_max - size) * len(payloads) // max(size, 1)
            begin = first + len(payloads)
            end = begin + max(1, min(fitting, _AT_ONCE_MAX, last - begin + 1))
            more = [packet.payload for packet in await asyncio.gather(*map(self.read_entry, range(begin, end)))]
            payloads += more
            size += sum(map(len, more))
        return payloads

    async def read_entry(self, entry_id: int) -> Packet:
        """Return one entry, acknowledged or not."""
        asked: dict[asyncio.Task[Packet | str], str] = {}
        problems: list[str] = []
        lost = True
        waiting = self._in_turn(entry_id)
        try:
            while asked or waiting:
                if waiting:
                    bookie_id = waiting.pop(0)
                    asked[asyncio.create_task(self._ask(bookie_id, entry_id))] = bookie_id
                timeout = _NEXT_AFTER_S if waiting else None
                done, late = await asyncio.wait(asked, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                for task in () if done else late:
                    self._bookies.avoid(asked[task])  # also for other ledgers, which would wait as long
                for task in done:
                    bookie_id, answer = asked.pop(task), task.result()
                    if isinstance(answer, Packet):
                        self._preferred = bookie_id
                        return answer
                    lost = lost and not answer.startswith("?")
                    problems.append(f"bookie {bookie_id}: {answer.removeprefix('?')}")
        finally:
            for task in asked:
                task.cancel()
        kind = EntryDamaged if lost else EntryUnreachable
        raise kind(self.ledger_id, entry_id, "; ".join(problems))

    async def _read_batch(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        """Read from one bookie in one answer; nothing if it cannot do that or lacks the entries."""
        metadata = self.metadata
        bookie_id = self._in_turn(first)[0]
        striped = metadata.quorum.ensemble != metadata.quorum.write
        if striped or first == last or not self._bookies.reads_batches(bookie_id):
            return []
        try:
            connection = await self._bookies.connect(bookie_id)
            async with asyncio.timeout(_NEXT_AFTER_S):
                reply = await connection.read_batch(
                    self.ledger_id, first, count_max=last - first + 1, bytes_max=bytes_max
                )
        except BookieAway:
            return []
        except TimeoutError:
            self._bookies.avoid(bookie_id)
            return []
        payloads = self._opened_run(bookie_id, reply.packets, first)
        if payloads:
            self._preferred = bookie_id
        return payloads

    def _opened_run(self, bookie_id: str, packets: Sequence[bytes | memoryview], first: int) -> list[bytes]:
        """Return the payloads up to the first damaged packet."""
        payloads = self._digest.open_run(packets, self.ledger_id, first)
        if payloads is not None:
            return payloads
        opened = (self._opened(bookie_id, raw, first + offset) for offset, raw in enumerate(packets))
        return [packet.payload for packet in takewhile(bool, opened) if packet is not None]

    def _in_turn(self, entry_id: int) -> list[str]:
        def rank(bookie_id: str) -> tuple[bool, bool]:
            return self._bookies.is_avoided(bookie_id), bookie_id != self._preferred

        return sorted(self.metadata.bookies_of(entry_id), key=rank)

    async def _ask(self, bookie_id: str, entry_id: int) -> Packet | str:
        """Return the entry, or the reason, which starts with a question mark if the bookie may have the entry."""
        try:
            connection = await self._bookies.connect(bookie_id)
        except BookieAway as error:
            return f"?{error.reason}"
        reply: Reply = await connection.read(self.ledger_id, entry_id)
        if reply.code != Code.OK:
            return meaning(reply.code) if reply.code in NOT_THERE else f"?{meaning(reply.code)}"
        return self._opened(bookie_id, reply.packets[0], entry_id) or "its bytes are not those that were written"

    def _opened(self, bookie_id: str, raw: bytes | memoryview, entry_id: int) -> Packet | None:
        try:
            return self._digest.open(raw, self.ledger_id, entry_id)
        except WrongDigest as error:
            log.error(
                "entry damaged bookie=%s ledger=%d entry=%d problem=%s", bookie_id, self.ledger_id, entry_id, error
            )
            return None
