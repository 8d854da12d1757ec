"""Positions and message ids: their order and their text form."""

from __future__ import annotations

from typing import NamedTuple

from interpulse.model.numbers import LONG_MAX

__all__ = ["EARLIEST", "LATEST", "ChunkMessageId", "MessageId", "Position", "SiteMessageId"]


class Position(NamedTuple):
    """The address of one entry: its ledger, and its number there. Compared as a pair.

    ``Position(ledger, -1)`` is before the first entry of that ledger.
    """

    ledger: int
    entry: int

    def __str__(self) -> str:
        return f"{self.ledger}:{self.entry}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Parse the form ``ledger:entry``. Raise ValueError."""
        ledger, separator, entry = text.partition(":")
        if not separator:
            raise ValueError(f"not a position: {text!r}, expected ledger:entry")
        return cls(int(ledger), int(entry))


EARLIEST = Position(-1, -1)
"""The position before every entry of every topic."""

LATEST = Position(LONG_MAX, LONG_MAX)
"""The position after every entry of every topic."""


class MessageId(NamedTuple):
    """The address of one message: its entry, its partition, and its index inside a batch (-1 = no batch)."""

    ledger: int
    entry: int
    partition: int = -1
    batch_index: int = -1

    @classmethod
    def of(cls, position: MessageId | Position) -> MessageId:
        """Return a message id; a position becomes the id of its entry."""
        return position if isinstance(position, MessageId) else cls(*position)

    @property
    def position(self) -> Position:
        """The entry that holds this message, the last one of a chunked message."""
        return Position(self.ledger, self.entry)

    @property
    def first_chunk(self) -> Position | None:
        """The first entry of a chunked message, so that all of it can be read again; None for others."""
        return None

    @property
    def cluster(self) -> str | None:
        """The service URL of the site that stores the message; None if the client knows one cluster only.

        It is no part of the bytes or of the order of message ids.
        """
        return None

    @property
    def source(self) -> Position | None:
        """The entry on the other site that this message is a copy of; None if it is no copy or that is not known."""
        return None

    def of_site(self, cluster: str, source: Position | None = None) -> MessageId:
        """Return this id with the service URL of its site, and the entry there that it is a copy of."""
        made = tuple.__new__(SiteMessageId, self)  # without the checks of arguments: one is made for each message
        made._first_chunk, made._cluster, made._original = self.first_chunk, cluster, source
        return made

    def __str__(self) -> str:
        text = f"{self.ledger}:{self.entry}:{self.partition}"
        return text if self.batch_index < 0 else f"{text}:{self.batch_index}"


class ChunkMessageId(MessageId):
    """The address of a chunked message: its last entry, and the first one as well.

    It equals, and is ordered like, the plain id of the last entry.
    """

    _first_chunk: Position | None = None

    def __new__(
        cls, ledger: int, entry: int, partition: int = -1, batch_index: int = -1, first_chunk: Position | None = None
    ) -> ChunkMessageId:
        made = super().__new__(cls, ledger, entry, partition, batch_index)
        made._first_chunk = first_chunk
        return made

    @property
    def first_chunk(self) -> Position | None:
        return self._first_chunk


class SiteMessageId(ChunkMessageId):
    """The address of a message of a client with several sites, one of which stores it.

    It equals, and is ordered like, the plain id.
    """

    _cluster: str | None = None
    _original: Position | None = None

    @property
    def cluster(self) -> str | None:
        return self._cluster

    @property
    def source(self) -> Position | None:
        return self._original
