"""Bugs of brokers that share a cluster, which S4 must find."""

from __future__ import annotations

from interpulse.storage.bookkeeper.connection import BookieConnection
from interpulse.storage.bookkeeper.pending import PendingEntries
from tests.support.bookie_journal import BookieJournal


def receipt_below_ack_quorum() -> None:
    """15: an entry is acknowledged when the first bookie has it."""
    begin = PendingEntries.__init__
    PendingEntries.__init__ = lambda self, quorum: begin(self, quorum._replace(ack=1))  # type: ignore[method-assign]


def ledger_opened_without_fencing() -> None:
    """16: recovery reads a ledger whose writer may go on."""
    read = BookieConnection.read
    BookieConnection.read = lambda self, *arguments, **_: read(self, *arguments)  # type: ignore[method-assign]


def entry_answered_before_the_sync() -> None:
    """131: bookies answer before their journal is on disk; clusters that do so lose messages."""
    BookieJournal.when_synced = lambda self, callback: callback()  # type: ignore[method-assign]
