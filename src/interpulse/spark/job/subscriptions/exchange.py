"""Exchange of the acknowledgements of a topic-partition with its counterpart on the target.

Everything that is acknowledged on one cluster is acknowledged on both, as soon as its counterpart is there. A reset is
carried to the cluster that has the lower number of resets.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from interpulse.model.errors import Conflict, InvalidRequest, MetadataError, PulsarError, SubscriptionNotFound
from interpulse.model.ids import LATEST, Position
from interpulse.model.names import TopicName
from interpulse.replication.acknowledgements import (
    Acknowledgements,
    Span,
    Translation,
    after,
    before,
    count_behind,
    news_of,
)
from interpulse.spark.job.routes.route import Emit
from interpulse.spark.job.subscriptions.copy_map import CopyMap, Place
from interpulse.spark.job.subscriptions.reverse_copies import ReverseCopies
from interpulse.spark.job.subscriptions.site import Site, SubscriptionState

log = logging.getLogger(__name__)

SYNCED: Final = "SYNCED"
BEHIND: Final = "BEHIND"
REBUILDING: Final = "REBUILDING"
HELD: Final = "HELD"
_WRONG_MAP: Final = (InvalidRequest, MetadataError)
"""Errors of a cluster that does not have an entry which is to be acknowledged."""


class Standing(NamedTuple):
    """Standing of the subscriptions of one topic-partition.

    ``pending`` counts acknowledged entries of the source that are not copied yet, of the subscription with most of
    them. ``since`` is the monotonic time at which the first was seen.
    """

    state: str = SYNCED
    pending: int = 0
    since: float | None = None
    reason: str | None = None

    @property
    def age_ms(self) -> int:
        """Time for which an acknowledgement has been pending."""
        return 0 if self.since is None else int((time.monotonic() - self.since) * 1000)


class Side(NamedTuple):
    """A topic-partition on one cluster."""

    site: Site
    topic: TopicName

    def states(self) -> Mapping[str, SubscriptionState]:
        """Return its subscriptions by name."""
        return self.site.states(self.topic)


class _Pair(NamedTuple):
    """A subscription on both clusters. ``offset`` is what the source counts more resets than the target."""

    name: str
    source: SubscriptionState
    target: SubscriptionState
    offset: int

    @property
    def is_in_step(self) -> bool:
        return self.source.resets == self.target.resets + self.offset


class TopicExchange:
    """Exchange of one topic-partition. Call :meth:`run` after a change on either side, or after new copies."""

    def __init__(
        self,
        source: Side,
        target: Side,
        copies: CopyMap,
        reverse: ReverseCopies,
        copied_upto: Callable[[], Position],
        emit: Emit,
    ) -> None:
        """``copied_upto`` returns the source position up to which nothing has to be copied any more."""
        self.source = source
        self.target = target
        self.copies = copies
        self.standing: Standing | None = None
        """None while no subscription is on both clusters."""
        self._reverse = reverse
        self._copied_upto = copied_upto
        self._emit = emit
        self._offsets: dict[str, int] = {}

    async def run(self) -> Place | None:
        """Carry what is new in both directions. :attr:`standing` has the reason if a cluster refuses it.

        Return a place if :meth:`rebuild` is needed from there first.
        """
        try:
            await self._create_missing()
            return await self._exchange(self._pairs())
        except PulsarError as problem:
            self._hold(problem)
            return None

    async def rebuild(self, lowest: Place) -> None:
        """Read from the target which entries are copies, behind a place."""
        try:
            await self.copies.rebuild(lowest)
        except PulsarError as problem:
            self._hold(problem)

    def _hold(self, problem: PulsarError) -> None:
        if isinstance(problem, _WRONG_MAP):
            self.copies.clear()
        earlier = self.standing or Standing()
        if earlier.reason != str(problem):
            log.warning("subscriptions not carried over topic=%s error=%s", self.source.topic, problem)
        self.standing = earlier._replace(state=HELD, reason=str(problem))

    async def _create_missing(self) -> None:
        """Create subscriptions of the source on the target, in front of what is on its way."""
        for name, state in self.source.states().items():
            if name not in self.target.states():
                await self.target.site.create(self.target.topic, name, state.properties)

    def _pairs(self) -> list[_Pair]:
        """Return the subscriptions of both. Numbers that do not outlive their process count from the first look."""
        there = self.target.states()
        pairs = []
        for name, state in self.source.states().items():
            if name in there:
                keep = self.source.site.keeps_resets and self.target.site.keeps_resets
                offset = self._offsets.setdefault(name, 0 if keep else state.resets - there[name].resets)
                pairs.append(_Pair(name, state, there[name], offset))
        return pairs

    async def _exchange(self, pairs: list[_Pair]) -> Place | None:
        if not pairs:
            self.standing = None
            self.copies.clear()
            return None
        lowest = _lowest(pairs)
        if not self.copies.covers(lowest):
            self.standing = Standing(REBUILDING)
            return lowest
        for pair in pairs:
            if pair.is_in_step:
                await self._carry(pair, pair.source, pair.target, self.target, self.copies.to_target)
                await self._carry(pair, pair.target, pair.source, self.source, self.copies.to_source)
            elif pair.source.resets > pair.target.resets + pair.offset:
                await self._reset_target(pair)
            else:
                await self._reset_source(pair)
        self.copies.forget(lowest)
        self._note_pending([pair.source.acknowledgements for pair in pairs])
        return None

    async def _carry(
        self, pair: _Pair, here: SubscriptionState, there: SubscriptionState, side: Side, to: Translation
    ) -> None:
        """Acknowledge on ``side`` what was acknowledged ``here``."""
        news = news_of(here.acknowledgements, there.acknowledgements, to)
        if not news:
            return
        try:
            count = await side.site.acknowledge(side.topic, pair.name, news, resets=there.resets)
        except Conflict:
            return  # after a reset, which is carried next
        except SubscriptionNotFound:
            side.site.forget(side.topic, pair.name)
            return
        if count:
            self._report(pair.name, side, acknowledged=count)

    async def _reset_target(self, pair: _Pair) -> None:
        """Move the subscription back on the target, in front of everything that the source waits for again."""
        moved_to = pair.source.acknowledgements.mark_delete
        waiting = _first_behind(moved_to, self.copies.to_target)
        own = await self._reverse.first_behind(moved_to)
        places = [waiting, None if own is None else own.source]
        await self._reset(self.target, pair, pair.target, places, pair.source.resets - pair.offset)

    async def _reset_source(self, pair: _Pair) -> None:
        """Move the subscription back on the source, in front of everything that the target waits for again."""
        moved_to = pair.target.acknowledgements.mark_delete
        waiting = _first_behind(moved_to, self.copies.to_source)
        own = await self._reverse.first_of_those_behind(moved_to)
        places = [waiting, None if own is None else own.there]
        await self._reset(self.source, pair, pair.source, places, pair.target.resets + pair.offset)

    async def _reset(
        self, side: Side, pair: _Pair, state: SubscriptionState, waiting: Iterable[Position | None], resets: int
    ) -> None:
        places = [before(place) for place in waiting if place is not None]
        upto = min([state.acknowledgements.mark_delete, *places])
        try:
            await side.site.reset(side.topic, pair.name, upto, before=state.resets, resets=resets)
        except Conflict:
            return  # another reset came meanwhile, and is seen next
        except SubscriptionNotFound:
            side.site.forget(side.topic, pair.name)
            return
        self._report(pair.name, side, resetTo=str(upto))

    def _report(self, name: str, side: Side, **details: int | str) -> None:
        self._emit("subscription", topic=str(self.source.topic), subscription=name, on=side.site.cluster, **details)

    def _note_pending(self, acknowledged: Sequence[Acknowledgements]) -> None:
        last = self.copies.last_source
        if any(count_behind(each, last) for each in acknowledged):
            last = max(last, self._copied_upto())  # the last entries may be ones that are not copied
        pending = max(count_behind(each, last) for each in acknowledged)
        since = self.standing.since if self.standing is not None else None
        self.standing = Standing(BEHIND, pending, since or time.monotonic()) if pending else Standing()


def _first_behind(position: Position, to: Translation) -> Position | None:
    """Return the counterpart of the first entry behind a position that has one."""
    span = next(iter(to.spans(Span(after(position), LATEST))), None)
    return None if span is None else span.first


def _lowest(pairs: Iterable[_Pair]) -> Place:
    """Return the place behind which some subscription has something to acknowledge."""
    states = [(pair.source.acknowledgements, pair.target.acknowledgements) for pair in pairs]
    return Place(min(here.mark_delete for here, _ in states), min(there.mark_delete for _, there in states))
