"""The selection of a consumer for each entry, and the selector of Shared; `key_selector` has that of Key_Shared.

*Replays* are entries to be sent outside the order of the log: returned by a consumer, held for one that cannot take
them now, or due after a delay. The selector owns them, because their order depends on the consumers that may get them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.dispatch.consumer import Consumer, message_total, share_out
from interpulse.broker.live.entry_metadata import EntryMetadataCache
from interpulse.model.ids import Position

Assignments = list[tuple[Consumer, list[Delivery]]]
_position = itemgetter(0)
_UNFINISHED_CHUNKS_MAX = 1_000
"""Chunked messages whose consumer is remembered; more come from producers that never sent the last chunk."""


class Replays:
    """A sorted set of positions: most come in order, and most leave from the front."""

    __slots__ = ("_positions",)

    def __init__(self, positions: Iterable[Position] = ()) -> None:
        self._positions = sorted(positions)

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[Position]:
        return iter(self._positions)

    def __contains__(self, position: Position) -> bool:
        index = bisect_left(self._positions, position)
        return index < len(self._positions) and self._positions[index] == position

    def first(self, count: int) -> list[Position]:
        return self._positions[:count]

    def add(self, position: Position) -> None:
        """Add a position; does nothing if it is present."""
        positions = self._positions
        if not positions or positions[-1] < position:
            positions.append(position)
        elif position not in self:
            positions.insert(bisect_left(positions, position), position)

    def add_all(self, coming: Sequence[Position]) -> None:
        """Add positions, in order, of which none is present."""
        if coming:
            held = self._positions
            behind = bisect_left(held, coming[0])
            held[behind:] = sorted([*coming, *held[behind:]]) if behind < len(held) else coming

    def discard(self, position: Position) -> bool:
        """Remove a position; return False if it was absent."""
        index = bisect_left(self._positions, position)
        if index == len(self._positions) or self._positions[index] != position:
            return False
        del self._positions[index]
        return True

    def discard_all(self, gone: Sequence[Position]) -> None:
        """Remove these positions, which are in order; absent ones are ignored."""
        if not gone:
            return
        positions = self._positions
        start = bisect_left(positions, gone[0])
        if positions[start : start + len(gone)] == gone:
            del positions[start : start + len(gone)]
            return
        end = bisect_right(positions, gone[-1])
        leaving = set(gone)
        positions[start:end] = [position for position in positions[start:end] if position not in leaving]

    def pop_upto(self, position: Position) -> list[Position]:
        end = bisect_right(self._positions, position)
        taken = self._positions[:end]
        del self._positions[:end]
        return taken

    def clear(self) -> None:
        self._positions.clear()


class Selection(NamedTuple):
    """Consumers with their entries, and entries held for later; the rest of the batch lacks permits."""

    assignments: Assignments
    held: list[Delivery]

    @property
    def entry_count(self) -> int:
        """The number of entries from the beginning of the batch that were decided."""
        return len(self.held) + sum(len(part) for _, part in self.assignments)


class RoundRobinSelector:
    """The selector for Shared: in turn, lower priority levels first; all chunks of a message go to one consumer."""

    def __init__(self, cache: Callable[[], EntryMetadataCache]) -> None:
        self._cache = cache
        self._turn = 0
        self._replays = Replays()
        self._chunk_owners: dict[str, Consumer] = {}
        self._held_chunks: dict[Position, str] = {}
        """Chunks among the replays that wait for the owner of their message."""
        self._held: Counter[str] = Counter()
        """The number of held chunks per message."""

    @property
    def waiting(self) -> int:
        return len(self._replays)

    def replays(self) -> list[Position]:
        """Return the entries that wait to be sent again."""
        return list(self._replays)

    def entries_wanted(self, ready: Sequence[Consumer]) -> int:
        return sum(consumer.permits for consumer in ready)

    def select(self, batch: Sequence[Delivery], ready: Sequence[Consumer]) -> Selection:
        budgets = [consumer.permits for consumer in ready]
        if not self._has_chunks(batch):
            assignments, self._turn = share_out(batch, ready, budgets, self._turn)
            return Selection(assignments, [])
        selected = self._select_chunks(batch, ready, budgets)
        for delivery in selected.held:
            self._replays.add(delivery.position)
        return selected

    def select_replays(self, batch: Sequence[Delivery], ready: Sequence[Consumer]) -> Selection:
        budgets = [consumer.permits for consumer in ready]
        if self._has_chunks(batch):
            assignments = self._select_chunks(batch, ready, budgets).assignments
        else:
            assignments, self._turn = share_out(batch, ready, budgets, self._turn)
        self._replays.discard_all(sorted(map(_position, chain.from_iterable(part for _, part in assignments))))
        return Selection(assignments, [])

    def next_replays(self, ready: Sequence[Consumer], entries_max: int) -> list[Position]:
        count = min(entries_max, sum(consumer.permits for consumer in ready))
        if not self._held_chunks:
            return self._replays.first(count)
        able = {None, *ready}
        owner_of = {uuid: self._chunk_owners.get(uuid) for uuid in self._held}
        return [replay for replay in self._replays if owner_of.get(self._held_chunks.get(replay, "")) in able][:count]

    def await_turn(self, positions: Iterable[Position]) -> None:
        self._replays.add_all(sorted(positions))

    def give_back(self, positions: Sequence[Position]) -> None:
        self._replays.add_all(positions)

    def acknowledged(self, position: Position, *, held: bool) -> bool:
        if not held and self._replays.discard(position):
            self._unhold(position)
        return False

    def acknowledged_all(self, positions: Iterable[Position]) -> bool:
        return False

    def forget_upto(self, position: Position) -> None:
        for replay in self._replays.pop_upto(position):
            self._unhold(replay)

    def joined(self, consumer: Consumer) -> None:
        """Do nothing: only owners of chunks have state."""

    def left(self, consumer: Consumer) -> None:
        self._chunk_owners = {uuid: owner for uuid, owner in self._chunk_owners.items() if owner is not consumer}

    def reset(self) -> None:
        self._replays.clear()
        self._chunk_owners.clear()
        self._held_chunks.clear()
        self._held.clear()

    def stats(self) -> dict[str, Any]:
        return {}

    def consumer_stats(self, consumer: Consumer) -> dict[str, Any]:
        return {}

    # --- chunks

    def _has_chunks(self, batch: Sequence[Delivery]) -> bool:
        cache = self._cache()
        if cache.all_ordinary_since(batch[0].position):
            return False
        return any(cache.get(delivery.position, delivery.entry).chunk_uuid for delivery in batch)

    def _select_chunks(self, batch: Sequence[Delivery], ready: Sequence[Consumer], budgets: list[int]) -> Selection:
        """Assign one entry after the other, until no consumer has permits for the next.

        A chunk whose owner cannot take it is held, with every later chunk of its message; the entries behind it
        continue.
        """
        shares: dict[Consumer, list[Delivery]] = {}
        held: list[Delivery] = []
        cache = self._cache()
        for delivery in batch:
            position = delivery.position
            metadata = cache.get(position, delivery.entry)
            uuid = metadata.chunk_uuid
            owner = self._chunk_owners.get(uuid)
            if owner is None:
                assignments, self._turn = share_out([delivery], ready, budgets, self._turn)
                if not assignments:
                    break
                owner = assignments[0][0]
            elif not self._charge(owner, delivery, uuid, ready, budgets):
                if position not in self._held_chunks:
                    self._held_chunks[position] = uuid
                    self._held[uuid] += 1
                held.append(delivery)
                continue
            self._unhold(position)
            if metadata.last_chunk:
                self._chunk_owners.pop(uuid, None)
            elif uuid:
                self._chunk_owners[uuid] = owner
                if len(self._chunk_owners) > _UNFINISHED_CHUNKS_MAX:
                    del self._chunk_owners[next(iter(self._chunk_owners))]
            shares.setdefault(owner, []).append(delivery)
        return Selection(list(shares.items()), held)

    def _charge(
        self, owner: Consumer, chunk: Delivery, uuid: str, ready: Sequence[Consumer], budgets: list[int]
    ) -> bool:
        """Charge the owner for this chunk; return False if it cannot take it now."""
        earlier_ones_wait = uuid in self._held and chunk.position not in self._held_chunks
        if earlier_ones_wait or owner not in ready or budgets[ready.index(owner)] <= 0:
            return False
        budgets[ready.index(owner)] -= message_total([chunk])
        return True

    def _unhold(self, position: Position) -> None:
        uuid = self._held_chunks.pop(position, None)
        if uuid is not None:
            self._held[uuid] -= 1
            if not self._held[uuid]:
                del self._held[uuid]
