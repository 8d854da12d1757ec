"""What can go wrong between this process and BookKeeper.

All are `PersistenceError`, so that callers of a log need to know none of them. What a bookie answers to one request is
a `Code`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from interpulse.model.errors import PersistenceError

__all__ = [
    "BookKeeperError",
    "BookieAway",
    "BrokenConnection",
    "Code",
    "EntryDamaged",
    "EntryTooLarge",
    "EntryUnreachable",
    "LedgerChanged",
    "LedgerFailed",
    "LedgerFenced",
    "LedgerUnusable",
    "NoLedger",
    "NotEnoughBookies",
    "RecoveryStopped",
    "WrongDigest",
    "meaning",
]


class Code(IntEnum):
    """What a bookie answers, where this client tells it from other answers."""

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
    """Said by this client: the connection ended before an answer, or could not be made. The outcome is unknown."""
    OVERDUE = -2
    """Said by this client: the answer did not come in time. The outcome is unknown."""


class BookKeeperError(PersistenceError):
    """BookKeeper cannot do what it was asked to."""


class _OfLedger(BookKeeperError):
    """About one ledger."""

    text = "ledger {}: {}"

    def __init__(self, ledger_id: int, reason: str = "") -> None:
        super().__init__(self.text.format(ledger_id, reason))
        self.ledger_id = ledger_id
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.ledger_id, self.reason)


class NoLedger(_OfLedger):
    """There is no such ledger: it was deleted, or never created."""

    text = "there is no ledger {}"
    retriable = False


class LedgerUnusable(_OfLedger):
    """The ledger is of a kind that this client does not read."""

    text = "ledger {} cannot be used: {}"
    retriable = False


class LedgerChanged(_OfLedger):
    """The metadata of the ledger are not what they were when they were read; nothing was written."""

    text = "the metadata of ledger {} were changed meanwhile"


class LedgerFailed(_OfLedger):
    """Nothing more of the ledger is acknowledged; what was, stays. It has to be recovered, and another one written."""

    text = "ledger {} cannot be written any more: {}"


class LedgerFenced(LedgerFailed):
    """Another process recovers the ledger or has recovered it: what it was written for is that one's now."""

    text = "ledger {} cannot be written any more: {}"


class RecoveryStopped(_OfLedger):
    """Too few bookies answer to say where the ledger ends; it is as recoverable as before."""

    text = "ledger {} cannot be recovered now: {}"


class _OfEntry(BookKeeperError):
    """About one entry."""

    text = "entry {}:{}: {}"

    def __init__(self, ledger_id: int, entry_id: int, reason: str) -> None:
        super().__init__(self.text.format(ledger_id, entry_id, reason))
        self.ledger_id = ledger_id
        self.entry_id = entry_id
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.ledger_id, self.entry_id, self.reason)


class EntryUnreachable(_OfEntry):
    """Bookies that may have the entry do not answer."""

    text = "entry {}:{} cannot be read now: {}"


class EntryDamaged(_OfEntry):
    """Every bookie that should have the entry has it not, or not as it was written."""

    text = "entry {}:{} is lost: {}"
    retriable = False


class EntryTooLarge(BookKeeperError):
    """The entry is larger than bookies take."""

    retriable = False

    def __init__(self, size: int, size_max: int) -> None:
        super().__init__(
            f"an entry of {size} bytes is larger than bookies take, {size_max}; divide it into smaller ones"
        )
        self.size = size
        self.size_max = size_max

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.size, self.size_max)


class NotEnoughBookies(BookKeeperError):
    """A ledger needs more writable bookies than are registered."""

    def __init__(self, needed: int, available: int) -> None:
        super().__init__(f"{needed} writable bookies are needed, and {available} are registered; start more bookies")
        self.needed = needed
        self.available = available

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.needed, self.available)


class BookieAway(BookKeeperError):
    """No connection to a bookie can be made."""

    def __init__(self, bookie_id: str, reason: str) -> None:
        super().__init__(f"bookie {bookie_id} cannot be reached: {reason}")
        self.bookie_id = bookie_id
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bookie_id, self.reason)


class WrongDigest(Exception):
    """The bytes of an entry are not those that were written."""


class BrokenConnection(Exception):
    """The bytes of the other end are not a bookie's protocol, or answer nothing that was asked."""


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
    Code.TOO_MANY_REQUESTS: "it has too much to do",
    Code.UNKNOWN_LEDGER_STATE: "it does not know what it has of the ledger",
    Code.CONNECTION_LOST: "the connection to it ended",
    Code.OVERDUE: "it does not answer in time",
}


def meaning(code: int) -> str:
    """The code of an answer in words."""
    return _MEANINGS.get(code, f"error {code}")  # type: ignore[call-overload,no-any-return]
