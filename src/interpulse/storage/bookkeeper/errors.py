"""Errors between this process and BookKeeper.

All are `PersistenceError`, so that callers of a log need to know none of them. A bookie's answer to one request is a
`Code`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final

from interpulse.model.errors import PersistenceError


class Code(IntEnum):
    """The answers of a bookie that this client distinguishes."""

    OK = 0
    NO_LEDGER = 1
    NO_ENTRY = 2
    BAD_REQUEST = 100
    IO_ERROR = 101
    UNAUTHORIZED = 102
    BAD_VERSION = 103
    FENCED = 104
    READ_ONLY = 105
    TOO_MANY_REQUESTS = 106
    UNKNOWN_LEDGER_STATE = 107
    CONNECTION_LOST = -1
    """Set by this client: the connection ended before an answer, or could not be opened. The outcome is unknown."""
    OVERDUE = -2
    """Set by this client: the answer did not come in time. The outcome is unknown."""


class BookKeeperError(PersistenceError):
    """BookKeeper cannot do what it was asked to do."""


@dataclass(eq=False, repr=False)
class _OfLedger(BookKeeperError):
    """An error of one ledger."""

    text: ClassVar[str]

    ledger_id: int
    reason: str = ""

    def __str__(self) -> str:
        return self.text.format(self.ledger_id, self.reason)


class NoLedger(_OfLedger, retriable=False):
    """The ledger does not exist: it was deleted, or never created."""

    text = "there is no ledger {}"


class LedgerUnusable(_OfLedger, retriable=False):
    """The ledger is of a kind that this client cannot read."""

    text = "ledger {} cannot be used: {}"


class LedgerChanged(_OfLedger):
    """The metadata of the ledger changed since they were read; nothing was written."""

    text = "the metadata of ledger {} were changed meanwhile"


class LedgerFailed(_OfLedger):
    """No further entry of the ledger is acknowledged. It must be recovered, and another one written."""

    text = "ledger {} cannot be written any more: {}"


class LedgerFenced(LedgerFailed):
    """Another process is recovering or has recovered the ledger, and owns its log now."""


class RecoveryStopped(_OfLedger):
    """Too few bookies answer to determine the end of the ledger. It can still be recovered later."""

    text = "ledger {} cannot be recovered now: {}"


@dataclass(eq=False, repr=False)
class _OfEntry(BookKeeperError):
    """An error of one entry."""

    text: ClassVar[str]

    ledger_id: int
    entry_id: int
    reason: str

    def __str__(self) -> str:
        return self.text.format(self.ledger_id, self.entry_id, self.reason)


class EntryUnreachable(_OfEntry):
    """The bookies that may have the entry do not answer."""

    text = "entry {}:{} cannot be read now: {}"


class EntryDamaged(_OfEntry, retriable=False):
    """No bookie that should have the entry has it as it was written."""

    text = "entry {}:{} is lost: {}"


@dataclass(eq=False, repr=False)
class EntryTooLarge(BookKeeperError, retriable=False):
    """The entry is larger than bookies accept."""

    size: int
    size_max: int

    def __str__(self) -> str:
        return (
            f"an entry of {self.size} bytes exceeds the limit of bookies, {self.size_max}; split it into smaller ones"
        )


@dataclass(eq=False, repr=False)
class NotEnoughBookies(BookKeeperError):
    """A ledger needs more writable bookies than are registered."""

    needed: int
    available: int

    def __str__(self) -> str:
        return f"{self.needed} writable bookies are needed, and {self.available} are registered; start more bookies"


@dataclass(eq=False, repr=False)
class BookieAway(BookKeeperError):
    """The bookie cannot be connected."""

    bookie_id: str
    reason: str

    def __str__(self) -> str:
        return f"bookie {self.bookie_id} cannot be reached: {self.reason}"


class WrongDigest(Exception):
    """The bytes of an entry are not those that were written."""


class BrokenConnection(Exception):
    """The bytes of the peer are not a bookie's protocol, or answer no open request."""


_MEANINGS: Final = {
    Code.OK: "done",
    Code.NO_LEDGER: "it has no such ledger",
    Code.NO_ENTRY: "it has no such entry",
    Code.BAD_REQUEST: "it does not understand the request",
    Code.IO_ERROR: "its disk failed or is full",
    Code.UNAUTHORIZED: "the ledger has another password, or the bookie asks for authentication",
    Code.BAD_VERSION: "it does not speak version 2 of the protocol",
    Code.FENCED: "the ledger was fenced",
    Code.READ_ONLY: "it takes no new entries",
    Code.TOO_MANY_REQUESTS: "it is too busy",
    Code.UNKNOWN_LEDGER_STATE: "it does not know what it has of the ledger",
    Code.CONNECTION_LOST: "the connection to it ended",
    Code.OVERDUE: "it does not answer in time",
}


def meaning(code: int) -> str:
    """Describe the code of an answer."""
    return _MEANINGS.get(code, f"error {code}")  # type: ignore[call-overload,no-any-return]
