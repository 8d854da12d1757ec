"""The metadata of ledgers and bookies in ZooKeeper.

Every change names the version that it changes. A write whose answer was lost is tried again: if it had been applied,
the version differs and the value is the written one.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from interpulse.storage.bookkeeper.errors import BookKeeperError, LedgerChanged, LedgerUnusable, NoLedger
from interpulse.storage.bookkeeper.records import (
    AVAILABLE,
    ID_PREFIX,
    LAYOUT,
    LEDGER_ID_MAX,
    READ_ONLY,
    Address,
    LedgerMetadata,
    decode_metadata,
    encode_metadata,
    parse_address,
    path_of,
    registered_address,
)
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.errors import (
    BadVersion,
    NodeExists,
    NoNode,
    NotConnected,
    OutcomeUnknown,
    SessionExpired,
    ZooKeeperError,
)
from interpulse.storage.zookeeper.records import Created

log = logging.getLogger(__name__)

T = TypeVar("T")

_LAYOUT_OF_PULSAR: Final = "HierarchicalLedgerManagerFactory"
_LOST_ANSWERS_MAX: Final = 10


class StoredLedger(NamedTuple):
    """The metadata of a ledger, and their version."""

    ledger: LedgerMetadata
    version: int


class LedgerMetadataStore:
    """The ledgers and bookies of a cluster. All methods raise `ZooKeeperError` if ZooKeeper does not answer."""

    def __init__(self, nodes: ZooKeeperClient) -> None:
        self._nodes = nodes
        self._addresses: dict[str, Address] = {}  # last seen, since a bookie that is down is not registered

    async def check_layout(self) -> None:
        """Raise `BookKeeperError` if this cluster does not store its ledgers where Pulsar does."""
        try:
            layout = (await self._nodes.get(LAYOUT)).value.decode(errors="replace")
        except NoNode:
            return
        name = layout.split("\n")[1].split(":")[0] if "\n" in layout else layout
        if name.rpartition(".")[2] != _LAYOUT_OF_PULSAR:
            raise BookKeeperError(
                f"ledgers of this cluster are laid out by {name[:100]} ({LAYOUT});"
                f" only {_LAYOUT_OF_PULSAR} is supported, which Pulsar uses"
            )

    async def create(self, ledger: LedgerMetadata) -> int:
        """Store the metadata of a new ledger, and return its id. Its token must be unique."""
        ledger_id = await self._next_id()
        path, value = path_of(ledger_id), encode_metadata(ledger)
        try:
            await self._surely(lambda: self._create_below_parents(path, value))
        except NodeExists:
            if (await self.read(ledger_id)).ledger.token != ledger.token:
                raise LedgerUnusable(ledger_id, "another ledger has its id") from None
        return ledger_id

    async def read(self, ledger_id: int) -> StoredLedger:
        """Return the current metadata. Raise `NoLedger`, or `LedgerUnusable` if they cannot be decoded."""
        try:
            node = await self._nodes.get(path_of(ledger_id))
        except NoNode:
            raise NoLedger(ledger_id) from None
        return StoredLedger(decode_metadata(ledger_id, node.value), node.stat.version)

    async def write(self, ledger_id: int, ledger: LedgerMetadata, version: int) -> int:
        """Replace metadata of this version, and return the new version. Raise `LedgerChanged` or `NoLedger`."""
        path, value = path_of(ledger_id), encode_metadata(ledger)
        try:
            return (await self._surely(lambda: self._nodes.set(path, value, version))).version
        except NoNode:
            raise NoLedger(ledger_id) from None
        except BadVersion:
            stored = await self.read(ledger_id)
            if stored.ledger != ledger:
                raise LedgerChanged(ledger_id) from None
            return stored.version

    async def delete(self, ledger_id: int) -> None:
        """Remove the metadata of any version. Bookies release the space at their next collection."""
        try:
            await self._surely(lambda: self._nodes.delete(path_of(ledger_id)))
        except NoNode:
            return

    async def writable_bookies(self) -> Sequence[str]:
        """Return the ids of bookies that accept new entries."""
        try:
            names = (await self._nodes.children(AVAILABLE)).names
        except NoNode:
            return []
        return [name for name in names if f"{AVAILABLE}/{name}" != READ_ONLY]

    async def address(self, bookie_id: str) -> Address:
        """Return the current or last known address of a bookie. Raise `BookKeeperError` if it is unknown."""
        for directory in (AVAILABLE, READ_ONLY):
            try:
                value = (await self._nodes.get(f"{directory}/{bookie_id}")).value
            except NoNode:
                continue
            except ZooKeeperError:
                break  # unreachable, and bookies do not need it
            registered = registered_address(bookie_id, value)
            if registered is not None:
                self._addresses[bookie_id] = registered
                break
        address = self._addresses.get(bookie_id) or parse_address(bookie_id)
        if address is None:
            raise BookKeeperError(f"bookie {bookie_id} is not registered, so its address is not known; start it")
        return address

    async def _next_id(self) -> int:
        made = await self._surely(lambda: self._create_below_parents(ID_PREFIX, b"", ephemeral=True, sequential=True))
        ledger_id = int(made.path.removeprefix(ID_PREFIX))
        if not 0 <= ledger_id <= LEDGER_ID_MAX:
            raise BookKeeperError(f"ledger ids have reached {ledger_id}; ids beyond {LEDGER_ID_MAX} are not supported")
        try:
            await self._nodes.delete(made.path)
        except ZooKeeperError as error:  # it is removed with the session
            log.debug("node of a ledger id not deleted path=%s problem=%s", made.path, error)
        return ledger_id

    async def _create_below_parents(self, path: str, value: bytes, **kind: bool) -> Created:
        try:
            return await self._nodes.create(path, value, **kind)
        except NoNode:
            await self._nodes.create_parents(path)
            return await self._nodes.create(path, value, **kind)

    async def _surely(self, write: Callable[[], Awaitable[T]]) -> T:
        """Return the answer to a write, which is repeated while its answer is lost.

        `NotConnected` means that a write was not applied, so it is not raised once it may have been.
        """
        lost = 0
        while True:
            try:
                return await write()
            except (OutcomeUnknown, SessionExpired) as error:
                lost += 1
                if lost > _LOST_ANSWERS_MAX:
                    raise
                log.debug("answer to a write of ledger metadata lost problem=%s", error)
            except NotConnected:
                if not lost:
                    raise
