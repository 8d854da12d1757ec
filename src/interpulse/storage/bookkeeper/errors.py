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
    "BrokenConnection",
    "Code",
    "LedgerChanged",
    "LedgerUnusable",
    "NoLedger",
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
    Code.CONNECTION_LOST: "it does not answer",
}


def meaning(code: int) -> str:
    """The code of an answer in words."""
    return _MEANINGS.get(code, f"error {code}")  # type: ignore[call-overload,no-any-return]
