"""An asyncio client of BookKeeper: ledgers are created, written, read, recovered and deleted.

One connection to each bookie serves all ledgers; ZooKeeper is asked through the session that it is given.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from interpulse.clock import now_ms
from interpulse.storage.bookkeeper.bookies import Bookies
from interpulse.storage.bookkeeper.connection import ConnectionConfig
from interpulse.storage.bookkeeper.errors import EntryUnreachable, LedgerUnusable
from interpulse.storage.bookkeeper.ledger_metadata import LedgerMetadata, Quorum, Segment
from interpulse.storage.bookkeeper.metadata_store import LedgerMetadataStore, Nodes, StoredLedger
from interpulse.storage.bookkeeper.packets import DigestType, digest_of
from interpulse.storage.bookkeeper.reader import LedgerReader, ReadableLedger, ask_last_confirmed
from interpulse.storage.bookkeeper.recovery import recover
from interpulse.storage.bookkeeper.writer import LedgerListener, LedgerWriter, WriterConfig

__all__ = ["BookKeeperClient", "BookKeeperConfig"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BookKeeperConfig:
    """How a client behaves."""

    digest: DigestType = DigestType.CRC32C  # of new ledgers
    password: bytes = b""  # of all ledgers
    connection: ConnectionConfig = field(default_factory=ConnectionConfig)
    writer: WriterConfig = field(default_factory=WriterConfig)


class BookKeeperClient:
    """The ledgers of one cluster. Close it at the end; the session with ZooKeeper stays."""

    def __init__(self, nodes: Nodes, config: BookKeeperConfig | None = None) -> None:
        self._config = config or BookKeeperConfig()
        self._store = LedgerMetadataStore(nodes)
        self._bookies = Bookies(self._store, self._config.connection)

    @property
    def entry_bytes_max(self) -> int:
        """The largest entry that bookies take."""
        return self._config.writer.entry_bytes_max

    async def check(self) -> None:
        """Raise `BookKeeperError` if this cluster's ledgers do not lie where Pulsar has them."""
        await self._store.check_layout()

    async def create(
        self,
        quorum: Quorum,
        *,
        custom: Mapping[str, bytes] | None = None,
        digest: DigestType | None = None,
        listener: LedgerListener | None = None,
    ) -> LedgerWriter:
        """A new ledger. ``custom`` tells operators what it is for. Raises `NotEnoughBookies`."""
        if not quorum.possible:
            raise ValueError("no ledger has ensemble {}, write quorum {} and ack quorum {}".format(*quorum))
        ensemble = await self._bookies.choose(quorum.ensemble)
        ledger = LedgerMetadata(
            quorum,
            (Segment(0, ensemble),),
            digest or self._config.digest,
            self._config.password,
            custom=dict(custom or {}),
            created_ms=now_ms(),
            token=random.getrandbits(63),
        )
        ledger_id = await self._store.create(ledger)
        log.debug("ledger created ledger=%d bookies=%s", ledger_id, ",".join(ensemble))
        return LedgerWriter(
            ledger_id, StoredLedger(ledger, 0), self._store, self._bookies, self._config.writer, listener
        )

    async def open(self, ledger_id: int) -> LedgerReader:
        """A ledger for reading, also while another writes it: then up to what is surely acknowledged at this moment.

        Raises `NoLedger`, `LedgerUnusable`, and `EntryUnreachable` if no bookie answers.
        """
        ledger = (await self._store.read(ledger_id)).ledger
        self._check_password(ledger_id, ledger)
        last = ledger.last_entry if ledger.closed else await self._last_confirmed(ledger_id, ledger)
        return self._reader(ReadableLedger(ledger_id, ledger, last))

    async def recover(self, ledger_id: int) -> LedgerReader:
        """A ledger that is closed for ever, whoever was writing it. Nothing that was acknowledged is missing.

        Raises `NoLedger`, `LedgerUnusable`, and `RecoveryStopped` if too few bookies answer: try again later.
        """
        self._check_password(ledger_id, (await self._store.read(ledger_id)).ledger)
        ledger = await recover(ledger_id, self._store, self._bookies)
        return self._reader(ReadableLedger(ledger_id, ledger, ledger.last_entry))

    def reader_of(self, writer: LedgerWriter) -> LedgerReader:
        """Reads what is acknowledged of a ledger that this client writes, or has closed."""
        if writer.metadata.closed:
            return self._reader(ReadableLedger(writer.ledger_id, writer.metadata, writer.metadata.last_entry))
        return LedgerReader(writer, self._bookies)

    async def delete(self, ledger_id: int) -> None:
        """Remove a ledger, open or not, there or not. Bookies give its room back at their next collection."""
        await self._store.delete(ledger_id)

    async def close(self) -> None:
        """End the connections to bookies; ledgers that are being written fail."""
        await self._bookies.close()

    def _reader(self, ledger: ReadableLedger) -> LedgerReader:
        return LedgerReader(ledger, self._bookies)

    def _check_password(self, ledger_id: int, ledger: LedgerMetadata) -> None:
        if ledger.password != self._config.password:
            raise LedgerUnusable(ledger_id, "it has another password")

    async def _last_confirmed(self, ledger_id: int, ledger: LedgerMetadata) -> int:
        digest = digest_of(ledger.digest, ledger.password)
        segment = ledger.last_segment
        asked = (ask_last_confirmed(ledger_id, bookie, digest, self._bookies) for bookie in segment.ensemble)
        answers = [answer for answer in await asyncio.gather(*asked) if answer is not None]
        if not answers:
            bookies = ", ".join(segment.ensemble)
            raise EntryUnreachable(ledger_id, segment.first, f"none of its bookies answers: {bookies}")
        return max([*answers, segment.first - 1])
