"""Model of the life of topics, and a judge of concurrent histories: properties T1 and T2 of the simulation.

The model decides by the tables of PIP-344 and PIP-414 and shares no rule with the broker. It covers persistent topics
of users on one cluster, without limits. The judge looks for an order in which every operation happens at one moment
between its start and its end, and every answer is the model's.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName


class Answer(Enum):
    """An answer without a partition count. Refusals have their HTTP status; both protocols agree on it."""

    DONE = "done"
    NOT_FOUND = 404
    CONFLICT = 409
    PRECONDITION_FAILED = 412
    UNPROCESSABLE = 422
    UNCHANGED = "failed, nothing changed"
    LOST = "lost, done or not"

    @classmethod
    def of(cls, error: PulsarError) -> Answer:
        """Return the refusal of the rules; LOST for any other error, because it leaves the outcome open."""
        return cls(error.http_status) if error.http_status in _REFUSALS else cls.LOST


_REFUSALS: Final = frozenset(answer.value for answer in Answer if isinstance(answer.value, int))


class AutoCreation(NamedTuple):
    """Policy for missing topics. Without ``partitions`` they become topics that are not partitioned."""

    allowed: bool = True
    partitions: int = 0


class State(NamedTuple):
    """Records of one base name: the partition count of its metadata, and the stored topics.

    A stored topic is the index of its partition, or -1 for a topic under the base name itself.
    """

    partitions: int = 0
    stored: frozenset[int] = frozenset()

    def allows(self, index: int, auto_creation: AutoCreation) -> bool:
        """Return True if a missing topic may be created: a partition of the topic may, whatever the policy."""
        if index >= 0 and self.partitions:
            return index < self.partitions
        return auto_creation.allowed

    def storing(self, index: int) -> State:
        return State(self.partitions, self.stored | {index})

    def covering(self, count: int) -> State:
        """Return the state with this partition count and all its partitions."""
        return State(count, self.stored.union(range(count)))

    def __str__(self) -> str:
        return f"{self.partitions} partitions, stored {sorted(self.stored)}"


@dataclass(frozen=True)
class Call:
    """Request of a client. ``create`` belongs to `ask_partitions` and `open_topic`, ``count`` to partitioned topics."""

    rule: Rule
    name: TopicName
    count: int = 0
    create: bool = True
    force: bool = False

    @property
    def index(self) -> int:
        return self.name.partition_index

    def outcomes(self, now: State, auto_creation: AutoCreation) -> Iterator[Outcome]:
        """Yield the outcomes that the model allows. Only a forced deletion is never refused because of clients."""
        answer, after = self.rule(self, now, auto_creation)
        yield answer, after
        if self.rule in (delete_topic, delete_partitioned) and answer is Answer.DONE and not self.force:
            yield Answer.PRECONDITION_FAILED, now


Outcome: TypeAlias = tuple[Answer | int, State]
Rule: TypeAlias = Callable[[Call, State, AutoCreation], Outcome]


def ask_partitions(call: Call, now: State, auto_creation: AutoCreation) -> Outcome:
    """PIP-344: the partition count, 0 for a single topic. Only a partitioned topic is created."""
    if call.index < 0 and now.partitions:
        return now.partitions, now
    if call.index in now.stored:
        return 0, now
    if not (call.create and now.allows(call.index, auto_creation)):
        return Answer.NOT_FOUND, now
    if call.index < 0 and auto_creation.partitions:
        return auto_creation.partitions, State(auto_creation.partitions, now.stored)
    return 0, now


def look_up(call: Call, now: State, auto_creation: AutoCreation) -> Outcome:
    """PIP-344, row 7, for a lookup by HTTP. A lookup by the binary protocol finds a broker for any name."""
    exists = call.index in now.stored or (call.index < 0 and now.partitions > 0)
    return (Answer.DONE if exists or now.allows(call.index, auto_creation) else Answer.NOT_FOUND), now


def open_topic(call: Call, now: State, auto_creation: AutoCreation) -> Outcome:
    """PIP-414, for PRODUCER and SUBSCRIBE."""
    if call.index not in now.stored and not (call.create and now.allows(call.index, auto_creation)):
        return Answer.NOT_FOUND, now
    consistent = call.index < now.partitions if call.index >= 0 else not now.partitions
    return (Answer.DONE, now.storing(call.index)) if consistent else (Answer.CONFLICT, now)


def create_topic(call: Call, now: State, auto_creation: AutoCreation) -> Outcome:
    """PIP-414: a topic that is not partitioned, or a lost partition."""
    if call.index >= 0 and call.index >= now.partitions:
        return Answer.PRECONDITION_FAILED, now
    if call.index in now.stored or (call.index < 0 and now.partitions):
        return Answer.CONFLICT, now
    return Answer.DONE, now.storing(call.index)


def create_partitioned(call: Call, now: State, auto_creation: AutoCreation) -> Outcome:
    """PIP-414: partitions that lost their metadata are adopted."""
    if call.index >= 0:
        return Answer.PRECONDITION_FAILED, now
    if now.partitions or -1 in now.stored or max(now.stored, default=-1) >= call.count:
        return Answer.CONFLICT, now
    return Answer.DONE, now.covering(call.count)


def expand(call: Call, now: State, auto_creation: AutoCreation) -> Outcome:
    """Partitions never shrink. Lost ones are restored, and ones beyond the count adopted by force."""
    if call.index >= 0:
        return Answer.PRECONDITION_FAILED, now
    if not now.partitions:
        return Answer.CONFLICT, now
    if call.count < now.partitions:
        return Answer.UNPROCESSABLE, now
    if max(now.stored, default=-1) >= now.partitions and not call.force:
        return Answer.CONFLICT, now
    return Answer.DONE, now.covering(call.count)


def restore(call: Call, now: State, auto_creation: AutoCreation) -> Outcome:
    """PIP-414: create the partitions that are lost."""
    if call.index >= 0:
        return Answer.PRECONDITION_FAILED, now
    return (Answer.DONE, now.covering(now.partitions)) if now.partitions else (Answer.NOT_FOUND, now)


def delete_topic(call: Call, now: State, auto_creation: AutoCreation) -> Outcome:
    """Delete one topic or partition."""
    if call.index < 0 and now.partitions and not (call.force and -1 in now.stored):
        return Answer.CONFLICT, now
    if call.index not in now.stored:
        return Answer.NOT_FOUND, now
    return Answer.DONE, State(now.partitions, now.stored - {call.index})


def delete_partitioned(call: Call, now: State, auto_creation: AutoCreation) -> Outcome:
    """Delete the metadata with the partitions that it counts."""
    if call.index >= 0:
        return Answer.PRECONDITION_FAILED, now
    if not now.partitions:
        return (Answer.CONFLICT if -1 in now.stored else Answer.NOT_FOUND), now
    return Answer.DONE, State(0, now.stored.difference(range(now.partitions)))


@dataclass(frozen=True, eq=False)
class Operation:
    """One command of a client: its time from the request to the answer, and the answer.

    A LOST operation may happen until ``end``, or never. ``end`` is then the moment at which the broker can no longer
    act on the request, for instance its death. A call that sends several commands is several operations; those whose
    answers it hides are LOST.
    """

    client: str
    call: Call
    answer: Answer | int
    start: float
    end: float = math.inf

    def __post_init__(self) -> None:
        assert self.start < self.end, self
        assert self.end < math.inf or self.answer is Answer.LOST, self

    def effects(self, now: State, auto_creation: AutoCreation) -> set[State]:
        """Return the states that the operation may leave behind, none if the model gives another answer."""
        if self.answer is Answer.UNCHANGED:
            return {now}
        outcomes = self.call.outcomes(now, auto_creation)
        if self.answer is Answer.LOST:
            return {now, *(after for _, after in outcomes)}
        return {after for answer, after in outcomes if answer == self.answer}

    def __str__(self) -> str:
        call = self.call
        options = f"count={call.count} create={call.create} force={call.force}"
        return f"{self.client} {call.rule.__name__} {call.name} {options}: {self.answer} in {self.start}..{self.end}"


class Possible(NamedTuple):
    """A state that the broker may be in, and the operations under way that have not happened yet."""

    state: State
    pending: frozenset[Operation] = frozenset()


def judge(
    history: Iterable[Operation], auto_creation: AutoCreation, stored: Mapping[TopicName, State] | None = None
) -> list[str]:
    """Return one sentence for each base name with answers that no order of its operations explains.

    ``stored`` are the states before the history, by base name; any other topic does not exist then.
    """
    by_base: dict[TopicName, list[Operation]] = defaultdict(list)
    for operation in history:
        by_base[operation.call.name.base].append(operation)
    verdicts = (
        _judge_topic(operations, auto_creation, (stored or {}).get(base, State()))
        for base, operations in by_base.items()
    )
    return [verdict for verdict in verdicts if verdict]


def _judge_topic(operations: Sequence[Operation], auto_creation: AutoCreation, first: State) -> str:
    """Return the first answer without an explanation, or nothing.

    An operation happens at the latest possible moment: at its own end, or before another one that ends.
    """
    possible = {Possible(first)}
    for operation, begins in _moments(operations):
        if begins:
            possible = {Possible(state, pending | {operation}) for state, pending in possible}
            continue
        before, possible = possible, _after(operation, possible, auto_creation)
        if not possible:
            states = sorted({str(state) for state, _ in before})
            return f"no order explains {operation}; before, there were {' or '.join(states)}"
    return ""


def _moments(operations: Sequence[Operation]) -> Iterator[tuple[Operation, bool]]:
    """Yield starts and ends by time. At equal times ends come first: a request and an answer take time."""
    moments = [(operation.end, False, operation) for operation in operations if operation.end < math.inf]
    moments += [(operation.start, True, operation) for operation in operations]
    for _, begins, operation in sorted(moments, key=lambda moment: moment[:2]):
        yield operation, begins


def _after(operation: Operation, possible: set[Possible], auto_creation: AutoCreation) -> set[Possible]:
    """Return everything that is possible once an operation has happened, after any others that are under way."""
    reached = set[Possible]()
    covered: dict[tuple[State, frozenset[Operation]], list[frozenset[Operation]]] = defaultdict(list)
    by_size: dict[int, list[Possible]] = defaultdict(list)
    for current in possible:
        by_size[len(current.pending)].append(current)
    for size in range(max(by_size), -1, -1):
        for current in by_size[size]:
            # Lost operations need not happen: what has more of them pending covers what has less.
            lost = frozenset(each for each in current.pending if each.answer is Answer.LOST and each is not operation)
            covering = covered[current.state, current.pending - lost]
            if any(lost <= other for other in covering):
                continue
            covering.append(lost)
            if operation in current.pending:
                by_size[size - 1] += _steps(operation, current, auto_creation)
            else:
                reached.add(current)
    return reached


def _steps(operation: Operation, current: Possible, auto_creation: AutoCreation) -> Iterator[Possible]:
    """Yield everything that one pending operation makes possible.

    A lost one without effect may stay pending, and so may all but the first to end of those with the same call.
    """
    lost = set[Call]()
    for each in sorted(current.pending, key=lambda each: each.end):
        optional = each.answer is Answer.LOST and each is not operation
        if optional and each.call in lost:
            continue
        if optional:
            lost.add(each.call)
        for after in each.effects(current.state, auto_creation):
            if after != current.state or not optional:
                yield Possible(after, current.pending - {each})
