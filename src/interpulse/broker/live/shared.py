"""Shared and Key_Shared: entries are dealt out, acknowledged one by one, and sent again when somebody gives them up.

Entries wait among the *replays* when they have to be sent outside the order of the log: given back by a consumer, or
held because their key is busy. Replays go before new entries. An entry is at one place at a time: not read yet,
pending with one consumer, among the replays, or acknowledged.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import takewhile

from interpulse.broker.live.api import Delivery, SubType
from interpulse.broker.live.consumer import Consumer
from interpulse.broker.live.cursor import Cursor, words_of
from interpulse.broker.live.dealing import Dealing
from interpulse.broker.live.feed import READ_BYTES_MAX, READ_ENTRIES_MAX, EntryFeed, FeedSource
from interpulse.model.errors import PulsarError
from interpulse.model.ids import Position
from interpulse.storage.api import LogEntry

__all__ = ["SharedDispatch"]

REPLAYS_MAX = 10_000
"""No new entries are read while more than these wait among the replays."""


class SharedDispatch:
    """See the module."""

    def __init__(self, sub_type: SubType, source: FeedSource, cursor: Cursor, dealing: Dealing) -> None:
        self.sub_type = sub_type
        self.consumers: list[Consumer] = []
        self.feed = EntryFeed(source, cursor, self.pump)
        self._source = source
        self._cursor = cursor
        self._dealing = dealing
        self._replays: list[Position] = []
        self._redeliveries: dict[Position, int] = {}
        self._replay_entries: dict[Position, bytes] = {}
        """Replays that were read from disk and not sent yet."""
        self._reading = False
        self._round = 0

    @property
    def active(self) -> Consumer | None:
        """Nobody is preferred."""
        return None

    @property
    def read_position(self) -> Position:
        """Everything up to here was read."""
        return self.feed.after

    @property
    def replaying(self) -> int:
        """Entries that wait to be sent again."""
        return len(self._replays)

    def add(self, consumer: Consumer) -> None:
        """Raises ConsumerAssignError if its key ranges are taken."""
        self._dealing.joined(consumer)
        if not self.consumers:
            self._start_again()
        self.consumers.append(consumer)
        self.consumers.sort(key=lambda each: each.priority_level)

    def remove(self, consumer: Consumer) -> None:
        """What the consumer held goes to others."""
        self.consumers.remove(consumer)
        self._dealing.left(consumer)
        self._give_back(consumer, list(consumer.pending))
        self.pump()

    def offer(self, fresh: Sequence[Delivery], previous: Position) -> None:
        """Entries that follow ``previous`` became durable; none of them is a marker."""
        if self.feed.after != previous or self._replays or self.feed.reading:
            self.pump()
            return
        ready = self._ready()
        if not ready:
            return
        dealt = self._deal(fresh, ready)
        if dealt:
            self.feed.after = fresh[dealt - 1].position
        if dealt < len(fresh):
            self.pump()

    def pump(self) -> None:
        """Send what permits allow, replays first."""
        while ready := self._ready():
            if self._replays and self._pump_replays(ready):
                continue
            if self._reading or len(self._replays) > REPLAYS_MAX or not self._pump_new(ready):
                return

    def redeliver(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        """Send again what this consumer holds: these entries, or all."""
        held = [each for each in positions if each in consumer.pending] if positions else list(consumer.pending)
        for position in held:
            self._redeliveries[position] = self._redeliveries.get(position, 0) + 1
        consumer.redelivered.messages += sum(consumer.pending[each] for each in held)
        self._give_back(consumer, held)
        self.pump()

    def rewind(self) -> None:
        """Begin again behind the mark-delete position, as if nothing had been sent."""
        for consumer in self.consumers:
            consumer.pending.clear()
            consumer.unacknowledged = 0
        self._start_again()
        self.pump()

    def released(self, consumer: Consumer, position: Position, messages_left: int) -> None:
        """An acknowledgement by ``consumer``, who is usually but not always the one that holds the entry."""
        holder = self._holder(consumer, position)
        was_blocked = holder is not None and holder.blocked
        if holder is not None:
            holder.release(position, messages_left)
        playable = False
        if not messages_left:
            self._redeliveries.pop(position, None)
            playable = self._dealing.acknowledged(position, held=holder is not None)
        if playable or was_blocked:
            self.pump()

    # --- parts

    def _start_again(self) -> None:
        self._replays.clear()
        self._redeliveries.clear()
        self._replay_entries.clear()
        self._round += 1
        self._dealing.reset()
        self.feed.rewind(self._cursor.mark_delete)

    def _holder(self, likely: Consumer, position: Position) -> Consumer | None:
        if position in likely.pending:
            return likely
        return next((each for each in self.consumers if position in each.pending), None)

    def _ready(self) -> list[Consumer]:
        return [each for each in self.consumers if each.permits > 0 and not each.blocked and each.sink.writable]

    def _give_back(self, consumer: Consumer, positions: Iterable[Position]) -> None:
        for position in positions:
            if not consumer.release(position):
                continue
            if self._cursor.is_acknowledged(position):  # not by the consumer: it expired, or an operator skipped it
                self._dealing.acknowledged(position, held=True)
            else:
                self._add_replay(position)
                self._dealing.given_back(position)

    def _add_replay(self, position: Position) -> None:
        index = bisect_left(self._replays, position)
        if index == len(self._replays) or self._replays[index] != position:
            self._replays.insert(index, position)

    def _pump_new(self, ready: Sequence[Consumer]) -> bool:
        batch = self.feed.peek(sum(each.permits for each in ready))
        if not batch:
            return False
        dealt = self._deal(batch, ready)
        self.feed.consumed(batch, dealt)
        return dealt > 0

    def _deal(self, batch: Sequence[Delivery], ready: Sequence[Consumer], *, again: bool = False) -> int:
        """Send what can be sent; how many entries from the beginning of the batch are sent or held."""
        dealt = self._dealing.deal(batch, ready, again=again)
        for consumer, part in dealt.parts:
            consumer.hold(part)
        if again:
            sent = {delivery.position for _, part in dealt.parts for delivery in part}
            self._drop_replays(sent)
        for delivery in dealt.held:
            self._add_replay(delivery.position)
        for consumer, part in dealt.parts:
            consumer.deliver(part)
        return dealt.entry_count

    # --- replays

    def _pump_replays(self, ready: Sequence[Consumer]) -> bool:
        """Send replays; False if none can be sent now."""
        self._forget_replays({each for each in self._replays if self._cursor.is_acknowledged(each)})
        waiting = len(self._replays)
        permits = sum(each.permits for each in ready)
        wanted = [each for each in self._replays if self._dealing.playable(each, ready)]
        batch = [] if self._reading else self._fetch(wanted[: min(permits, READ_ENTRIES_MAX)])
        if batch:
            self._deal(batch, ready, again=True)
        return len(self._replays) < waiting

    def _forget_replays(self, gone: set[Position]) -> None:
        """Nobody will get these any more."""
        for position in gone:
            self._dealing.acknowledged(position, held=False)
        self._drop_replays(gone)

    def _drop_replays(self, gone: set[Position]) -> None:
        if gone:
            self._replays = [each for each in self._replays if each not in gone]
            for position in gone:
                self._replay_entries.pop(position, None)

    def _fetch(self, wanted: Sequence[Position]) -> list[Delivery]:
        """The beginning of these entries that is in memory; if there is none it is being read, and `pump` will come."""
        runs = _runs([each for each in wanted if each not in self._replay_entries])
        uncached: list[list[Position]] = []
        for number, run in enumerate(runs):
            entries = self._source.log.read_cached(run[0], entries_max=len(run), bytes_max=READ_BYTES_MAX)
            if entries is None:
                uncached = runs[number:]
                break
            self._take_in(run, entries)
        waiting = set(self._replays)
        present = takewhile(self._replay_entries.__contains__, [each for each in wanted if each in waiting])
        found = [self._delivery(position, self._replay_entries[position]) for position in present]
        if uncached and not found:
            self._reading = True
            self._source.spawn(self._read(uncached, self._round))
        return found

    async def _read(self, runs: Sequence[Sequence[Position]], round_: int) -> None:
        """Read as much of these runs as one read may hold, at least one entry."""
        bytes_left = READ_BYTES_MAX
        try:
            for run in runs:
                entries = await self._source.log.read(run[0], entries_max=len(run), bytes_max=bytes_left)
                if round_ == self._round:
                    self._take_in(run, entries)
                bytes_left -= sum(len(each.payload) for each in entries)
                if bytes_left <= 0:
                    break
        except PulsarError as error:
            self._source.read_failed(error)
            return
        finally:
            self._reading = False
        self.pump()

    def _take_in(self, run: Sequence[Position], entries: Sequence[LogEntry]) -> None:
        """Keep what was read of a run of replays; what should stand before it was dropped by the log."""
        expected = set(run).intersection(self._replays)
        self._replay_entries |= {found.position: found.payload for found in entries if found.position in expected}
        first = entries[0].position if entries else None
        self._forget_replays({each for each in run if first is None or each < first})

    def _delivery(self, position: Position, entry: bytes) -> Delivery:
        messages = self._source.facts.facts(position, entry).message_count
        waiting = self._cursor.waiting_mask(position) & ((1 << messages) - 1)
        count = self._redeliveries.get(position, 0)
        if waiting:
            return Delivery(position, entry, count, words_of(waiting), waiting.bit_count())
        return Delivery(position, entry, count, (), messages)


def _runs(positions: Sequence[Position]) -> list[list[Position]]:
    """Positions that follow each other in one ledger, together."""
    runs: list[list[Position]] = []
    for position in positions:
        if runs and runs[-1][-1] == (position.ledger, position.entry - 1):
            runs[-1].append(position)
        else:
            runs.append([position])
    return runs
