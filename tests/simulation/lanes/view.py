"""The source cluster for a planner that blocks, in a world without threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from interpulse.model.errors import PulsarError
from interpulse.model.ids import Position
from interpulse.spark.reading.planner import Beginning, Following, HeldBack, Ledger, TopicEnd, WrittenBatch
from interpulse.spark.reading.read_options import ReadOptions
from interpulse.spark.reading.source_view import BrokerSourceView
from interpulse.spark.reading.throttle import Rate
from interpulse.spark.state_disk import StateDisk

Result = TypeVar("Result")


class Unanswered(Exception):
    """A question whose answer is not there yet."""

    def __init__(self, key: Hashable, ask: Callable[[], Coroutine[Any, Any, object]]) -> None:
        super().__init__(key)
        self.key = key
        self.ask = ask


class ObservedView(BrokerSourceView):
    """The source cluster, whose acknowledgements are observed."""

    def __init__(
        self, options: ReadOptions, disk: StateDisk, on_acknowledge: Callable[[Mapping[str, Position]], None]
    ) -> None:
        """``on_acknowledge`` is called with the positions of each acknowledgement before it is sent."""
        super().__init__(options, disk)
        self._on_acknowledge = on_acknowledge

    async def acknowledge_in_loop(self, positions: Mapping[str, Position]) -> None:
        self._on_acknowledge(positions)
        await super().acknowledge_in_loop(positions)


class RememberedView:
    """`SourceView` of the broker's answers. A call without one raises `Unanswered`; `answered` asks and calls again."""

    def __init__(self, view: BrokerSourceView) -> None:
        self._view = view
        self._answers: dict[Hashable, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def answered(self, step: Callable[[], Result]) -> Result:
        """Return what a step of the planner returns, with answers of now."""
        self._answers.clear()
        while True:
            try:
                return step()
            except Unanswered as question:
                try:
                    self._answers[question.key] = await question.ask()
                except PulsarError as error:
                    self._answers[question.key] = error

    def _answer(self, ask: Callable[..., Coroutine[Any, Any, Any]], key: Hashable, *arguments: Any) -> Any:
        key = (ask.__name__, key)
        if key not in self._answers:
            raise Unanswered(key, partial(ask, *arguments))
        answer = self._answers[key]
        if isinstance(answer, PulsarError):
            raise answer
        return answer

    # ---- SourceView

    def discover(self) -> Iterable[str]:
        return self._view.discover()

    def ends(self, topics: Iterable[str]) -> Mapping[str, TopicEnd]:
        names = tuple(topics)
        answer: Mapping[str, TopicEnd] = self._answer(self._view.ends_in_loop, names, names)
        return answer

    def await_news(self, shortest: float, longest: float) -> bool:
        answer: bool = self._answer(self._view.await_news_in_loop, None, shortest, longest)
        return answer

    def following(self, topic: str, after: Position, upto: Position) -> Following | None:
        question = (topic, after, upto)
        answer: Following | None = self._answer(self._view.following_in_loop, question, *question)
        return answer

    def before(self, times: Mapping[str, int]) -> Mapping[str, Position]:
        raise NotImplementedError("lanes begin at their cursor")

    def beginnings(self, pending: Mapping[str, tuple[Position, Position]]) -> Mapping[str, Beginning]:
        raise NotImplementedError("a durable subscription keeps what is unread")

    def ledgers_there(self, ledgers: Mapping[str, int]) -> Collection[str]:
        raise NotImplementedError("a durable subscription keeps what is unread")

    def ledgers(self, topics: Sequence[str]) -> Mapping[str, Sequence[Ledger]]:
        raise NotImplementedError("ranges of lanes are not split")

    def held(self) -> Mapping[str, HeldBack]:
        return self._view.held()

    def rates(self) -> Mapping[str, Rate]:
        return self._view.rates()

    def copied(self) -> Mapping[str, Position]:
        return self._view.copied()

    def activity(self) -> Mapping[str, bool]:
        return self._view.activity()

    def note_followed(self, topics: Collection[str]) -> None:
        self._view.note_followed(topics)

    def written(self) -> WrittenBatch | None:
        return self._view.written()

    def acknowledge(self, positions: Mapping[str, Position]) -> None:
        task = asyncio.ensure_future(self._view.acknowledge_in_loop(positions))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Do nothing: the query closes the view."""
