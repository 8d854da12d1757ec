"""Place of a reader in a topic that several clusters hold, so that it goes on at another one where it left off.

A topic has messages that were published on the present site, and copies of those of another one. The last of each kind
that was given out is remembered by its position on the site where it was published, which its copy names as well.
"""

from __future__ import annotations

import logging
from typing import NamedTuple, Protocol

from interpulse.client.consuming.copied_entries import CopiedEntry
from interpulse.client.consuming.unpacker import Start
from interpulse.client.messages import Message
from interpulse.client.session import Session
from interpulse.model.errors import MessageOfAnotherCluster
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position

_log = logging.getLogger(__name__)


class Search(Protocol):
    """Search in the topic at the new site."""

    async def open(self) -> None: ...

    async def last_copy(self, source: Position, published_ms: int | None) -> CopiedEntry | None: ...

    async def last_before_time(self, time_ms: int) -> Position: ...


class _Given(NamedTuple):
    """Message by its position on the site where it was published."""

    id: MessageId
    published_ms: int | None
    included: bool = False
    """True if it is the first one to be given out and not the last one that was."""

    def covers(self, position: Position, batch_index: int) -> bool:
        """Return True if a message is this one or before it, and was given out."""
        if position != self.id.position:
            return position < self.id.position
        whole = self.id.batch_index < 0 or batch_index < 0
        return not self.included if whole else batch_index < self.id.batch_index + (not self.included)


def check_site(message_id: MessageId, session: Session) -> None:
    """Raise MessageOfAnotherCluster for the id of a message that another cluster stores than that of the session.

    An id that names no cluster is of the present site, or without several sites of the service URL of the client, which
    is not where a broker has redirected to.
    """
    cluster, here = message_id.cluster, session.cluster
    is_unnamed = cluster is None and (session.site is not None or message_id.position in (EARLIEST, LATEST))
    if cluster != here and not is_unnamed:
        raise MessageOfAnotherCluster(
            f"message id {message_id} belongs to {cluster or 'the cluster of the service URL'}, and the client is at "
            f"{here or 'that of its service URL'}, where it names another message: seek by publish time instead"
        )


class ReadPlace:
    """Messages of one topic or partition that a reader was given out. Sites are named by their service URLs."""

    def __init__(self, start: Start, cluster: str | None, now_ms: int) -> None:
        """Begin at ``start`` on the site ``cluster``."""
        self._cluster = cluster
        self._elsewhere: str | None = None
        self._here: _Given | None = None
        """Last message given out that was published at the present site."""
        self._there: _Given | None = None
        """Last message given out that was published at the other site."""
        self._is_passing = False
        """True while messages that were given out at the other site may arrive."""
        self.restart(start, now_ms)

    @classmethod
    def behind(cls, last: Message | None, start: Start, cluster: str, *, now_ms: int, overlap_s: float) -> ReadPlace:
        """Return the place of a reader that was given ``last`` as its last message, or nothing since ``start``.

        A copy does not say where its original is if the client has one site: its publish time less ``overlap_s`` is the
        place.
        """
        place = cls(start, cluster, now_ms)
        if last is not None and last.replicated_from:
            place.restart(None, last.publish_time_ms - int(overlap_s * 1000))
        elif last is not None:
            place.note(last)
        return place

    def restart(self, start: Start | None, time_ms: int) -> None:
        """Begin elsewhere: at ``start``, or without one at a publish time."""
        self._here = self._there = None
        self._is_passing = False
        self._start_ms = time_ms
        self._is_late = start is not None and start.id.position == LATEST
        self._start: Start | None = None if self._is_late else start
        if start is not None and start.id.position not in (EARLIEST, LATEST):
            self._here = _Given(start.id, None, start.included)

    def begin_at(self, position: Position) -> None:
        """Record the first entry behind the end of the topic at which reading began."""
        if self._here is None and self._there is None:
            self._here = _Given(MessageId.of(position), None, included=True)

    def note(self, message: Message) -> None:
        """Record that the application was given a message."""
        source = message.id.source
        if source is None:
            self._here = _Given(message.id, message.publish_time_ms)
            return
        copied = MessageId(*source, message.id.partition, message.id.batch_index)
        self._there = _Given(copied, message.publish_time_ms)

    def unread(self, messages: list[Message]) -> list[Message]:
        """Return the messages of an entry without those that were given out at the other site."""
        if not self._is_passing:
            return messages
        unread = [message for message in messages if not self._covers(message.id)]
        if unread and (unread[-1].id.source is not None or self._there is None):
            # Positions ascend, so that no earlier one of the same kind follows.
            self._is_passing = self._here is not None and unread[-1].id.position <= self._here.id.position
        return unread

    def _covers(self, message_id: MessageId) -> bool:
        source = message_id.source
        given = self._here if source is None else self._there
        return given is not None and given.covers(source or message_id.position, message_id.batch_index)

    async def at_site(self, cluster: str, search: Search, *, overlap_s: float, topic: str) -> Start:
        """Return the place at which to go on at a site. Raise the failure of a request."""
        self._move(cluster)
        if self._there is None:
            return await self._from_start(search, overlap_s, topic) if self._here is None else _after(self._here)
        await search.open()
        place = await self._place_of_copy(self._there, search, overlap_s, topic)
        self._is_passing = True
        if self._here is None:
            return place
        own = _after(self._here)
        return min(own, place, key=lambda start: (start.id.position, not start.included))

    def _move(self, cluster: str) -> None:
        if cluster == self._cluster:
            return
        if self._elsewhere in (None, cluster):
            self._here, self._there = self._there, self._here
        else:  # a third site: nothing that was published there is known to have been given out
            self._here, self._there = None, self._here
        self._elsewhere, self._cluster = self._cluster, cluster

    async def _from_start(self, search: Search, overlap_s: float, topic: str) -> Start:
        """Return the place of a reader that was given nothing yet."""
        if self._start is not None:
            return self._start  # the beginning
        await search.open()
        time_ms = self._start_ms - int(overlap_s * 1000) * self._is_late
        _log.info("reader goes on by publish time at another site topic=%s time_ms=%d", topic, time_ms)
        return Start(MessageId.of(await search.last_before_time(time_ms)))

    async def _place_of_copy(self, given: _Given, search: Search, overlap_s: float, topic: str) -> Start:
        copy = await search.last_copy(given.id.position, given.published_ms)
        if copy is None:
            return await self._by_time(given, search, overlap_s, topic)
        if copy.source != given.id.position:  # its copy has not arrived yet
            return Start(MessageId.of(copy.there))
        there = MessageId(*copy.there, given.id.partition, given.id.batch_index)
        return Start(there, given.included)

    async def _by_time(self, given: _Given, search: Search, overlap_s: float, topic: str) -> Start:
        if given.published_ms is None:
            _log.warning("reader begins again at another site, no copy there names its source topic=%s", topic)
            return Start(MessageId.of(EARLIEST))
        time_ms = given.published_ms - int(overlap_s * 1000)
        _log.warning(
            "reader goes on by publish time at another site, no copy there names its source topic=%s time_ms=%d",
            *(topic, time_ms),
        )
        return Start(MessageId.of(await search.last_before_time(time_ms)))


def _after(given: _Given) -> Start:
    return Start(given.id, given.included)
