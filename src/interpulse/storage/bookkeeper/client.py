"""An asyncio client of BookKeeper: creates, writes, reads, recovers and deletes ledgers.

One connection to each bookie serves all ledgers. ZooKeeper is asked through the session of the caller.
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
from interpulse.storage.bookkeeper.metadata_store import LedgerMetadataStore, StoredLedger
from interpulse.storage.bookkeeper.packets import DigestType, digest_of
from interpulse.storage.bookkeeper.reader import LedgerReader, ReadableLedger, ask_last_confirmed
from interpulse.storage.bookkeeper.records import LedgerMetadata, Quorum, Segment
from interpulse.storage.bookkeeper.recovery import recover
from interpulse.storage.bookkeeper.writer import LedgerListener, LedgerWriter, WriterConfig
from interpulse.storage.zookeeper.client import ZooKeeperClient

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BookKeeperConfig:
    """Settings of a client."""

    digest: DigestType = DigestType.CRC32C  # of new ledgers
    password: bytes = b""  # of all ledgers
    connection: ConnectionConfig = field(default_factory=ConnectionConfig)
    writer: WriterConfig = field(default_factory=WriterConfig)


class BookKeeperClient:
    """The ledgers of one cluster. The caller closes it; the session with ZooKeeper stays open."""

    def __init__(self, nodes: ZooKeeperClient, config: BookKeeperConfig | None = None) -> None:
        self._config = config or BookKeeperConfig()
        self._store = LedgerMetadataStore(nodes)
        self._bookies = Bookies(self._store, self._config.connection)

    @property
    def entry_bytes_max(self) -> int:
        """The largest entry that bookies accept."""
        return self._config.writer.entry_bytes_max

    async def check(self) -> None:
        """Raise `BookKeeperError` if this cluster does not store its ledgers where Pulsar does."""
        await self._store.check_layout()

    async def create(
        self,
        quorum: Quorum,
        *,
        custom: Mapping[str, bytes] | None = None,
        digest: DigestType | None = None,
        listener: LedgerListener | None = None,
    ) -> LedgerWriter:
        """Create a ledger. ``custom`` describes its purpose to operators. Raise `NotEnoughBookies`."""
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
        """Open a ledger for reading. While another process writes it, the end is the last entry acknowledged by now.

        Raise `NoLedger`, `LedgerUnusable`, or `EntryUnreachable` if no bookie answers.
        """
        ledger = (await self._store.read(ledger_id)).ledger
        self._check_password(ledger_id, ledger)
        last = ledger.last_entry if ledger.closed else await self._last_confirmed(ledger_id, ledger)
        return LedgerReader(ReadableLedger(ledger_id, ledger, last), self._bookies)

    async def recover(self, ledger_id: int) -> LedgerReader:
        """Close a ledger for good, whichever process wrote it, and return a reader. No acknowledged entry is lost.

        Raise `NoLedger`, `LedgerUnusable`, or `RecoveryStopped` if too few bookies answer: try again later.
        """
        self._check_password(ledger_id, (await self._store.read(ledger_id)).ledger)
        ledger = await recover(ledger_id, self._store, self._bookies)
        return LedgerReader(ReadableLedger(ledger_id, ledger, ledger.last_entry), self._bookies)

    def reader_of(self, writer: LedgerWriter) -> LedgerReader:
        """Return a reader for the acknowledged entries of a ledger that this client writes or has closed."""
        metadata = writer.metadata
        source = ReadableLedger(writer.ledger_id, metadata, metadata.last_entry) if metadata.closed else writer
        return LedgerReader(source, self._bookies)

    async def delete(self, ledger_id: int) -> None:
        """Delete a ledger of any state, if it exists. Bookies release its space at their next collection."""
        await self._store.delete(ledger_id)

    async def close(self) -> None:
        """Close the connections to bookies. Ledgers that are being written fail."""
        await self._bookies.close()

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
