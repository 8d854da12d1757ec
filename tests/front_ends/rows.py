"""A row of the table: the records it starts from, the questions, and the front ends that can be asked.

Records are written in a short hand around a topic ``x``: ``x=3`` is the metadata of a partitioned topic (``x=3!`` one
that is being deleted, ``x=3+`` one with properties), ``x`` and ``x-partition-1`` are topic records.

Answers are words, the same at every front end: a number of partitions, ``ok``, ``not found``, the names of a list,
``refused: <why>`` where a name disagrees with the partition metadata, and otherwise the words of the front end: a
status of HTTP, ``error 1`` on the wire, the name of an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, TopicName

TENANT: Final = "front-ends"
PARTITIONS_MAX: Final = 10
"""``maxNumPartitionsPerPartitionedTopic`` of every broker the table is asked of."""

# Namespaces, by what they let topics do.
ON: Final = "on"
OFF: Final = "off"
TWO: Final = "two"  # missing topics are created with two partitions
ABOVE: Final = "above"  # as TWO, with more partitions than the broker allows
FULL: Final = "full"  # as TWO, with as many topics as the namespace may hold
FOREIGN: Final = "foreign"  # belongs to another cluster
REMOTE: Final = "remote"  # as TWO, and replicated to another cluster
NOWHERE: Final = "nowhere"  # belongs to no cluster
DELETED: Final = "deleted"
MISSING: Final = "missing"

OK: Final = "ok"
NOTHING: Final = "nothing"
NOT_FOUND: Final = "not found"
REFUSED: Final = "refused"
NO_METADATA: Final = "refused: no metadata"
OUTSIDE: Final = "refused: outside"
BASE_NAME: Final = "refused: base name"
_REASONS: Final = {
    "Partition metadata not found for the partitioned topic": NO_METADATA,
    "Illegal topic partition name": OUTSIDE,
    "Found partitioned metadata for non-partitioned topic": BASE_NAME,
}


def refused(message: str) -> str:
    """The word for a refusal that says ``message``."""
    return next((word for reason, word in _REASONS.items() if reason in message), REFUSED)


FrontEnd = Literal[
    "binary", "rest", "client", "client-http", "official", "official-http", "cli", "java", "java-http", "java-admin"
]

_NARROWING: Final = ("force", "local", "again")
_ASK: Final = ("partitions create", "partitions")
_ADMINISTER: Final = ("create", "create partitioned", "expand", "create missed", "delete", "delete partitioned")
_LISTS: Final = ("list", "list partitioned")
_ADMIN: Final = ("partitions", "http lookup", "stats", *_LISTS, "create subscription", *_ADMINISTER)

FRONT_ENDS: Final[Mapping[FrontEnd, tuple[str, ...]]] = {
    "binary": (*_ASK, "lookup", "producer", "subscribe", "subscribe only"),
    "rest": ("partitions create", "partitions body", "partitions create body", *_ADMIN),
    "client": (*_ASK, "lookup", "open producer", "open consumer"),
    "client-http": (*_ASK, "http lookup", "open producer"),
    "official": ("partitions create", "open producer", "open consumer"),
    "official-http": ("partitions create", "open producer"),
    "cli": (*_ADMIN, "open producer"),
    "java": (*_ASK, "lookup", "open producer", "open consumer"),
    "java-http": (*_ASK, "http lookup", "open producer"),
    "java-admin": _ADMIN,
}
"""The questions of each front end. A question may end with words that only narrow it: ``create partitioned 3``."""

FAST_FRONT_ENDS: Final[tuple[FrontEnd, ...]] = (
    "binary", "rest", "client", "client-http", "official", "official-http", "cli",
)  # fmt: skip
SILENT_FRONT_ENDS: Final[frozenset[FrontEnd]] = frozenset({"official", "official-http"})
"""Their exceptions do not carry what the broker said."""


@dataclass(frozen=True)
class Differs:
    """Real Pulsar answers otherwise, and we do not follow: its answer, what it leaves, and why we do not."""

    answer: str
    reason: str
    left: str | None = None


@dataclass(frozen=True)
class Row:
    """One row: what is there, the name that is used, and what comes of each question."""

    id: str
    name: str
    answers: Mapping[str, str | Mapping[str, str]]
    """By question; by front end where front ends cannot say the same."""
    there: str = ""
    left: Mapping[str, str] = field(default_factory=dict)
    """The records after a question, where it changes any."""
    namespace: str = ON
    domain: Domain = PERSISTENT
    front_ends: tuple[str, ...] = tuple(FRONT_ENDS)
    differs: Mapping[str, Differs] = field(default_factory=dict)
    """By question, or by ``front end question``."""
    beyond: str = ""
    """What the other cluster of the namespace has."""

    def cases(self, front_ends: tuple[FrontEnd, ...] = tuple(FRONT_ENDS)) -> Iterator[Case]:
        """Each question at each front end that can ask it."""
        for front_end in front_ends:
            if front_end in self.front_ends:
                yield from (Case(self, front_end, asked) for asked in self.answers if _can_ask(front_end, asked))


def kind_of(question: str) -> str:
    """The question without the words that only narrow it."""
    return " ".join(word for word in question.split() if not (word.isdigit() or word in _NARROWING or word[0] == "-"))


def _can_ask(front_end: FrontEnd, question: str) -> bool:
    between_brokers = "local" in question.split()
    return kind_of(question) in FRONT_ENDS[front_end] and (front_end == "rest" or not between_brokers)


@dataclass(frozen=True)
class Case:
    """One question of a row, put at one front end, about a topic of its own."""

    row: Row
    front_end: FrontEnd
    question: str

    @property
    def id(self) -> str:
        return f"{self.row.id}-{self.front_end}-{self.question.replace(' ', '-')}"

    @property
    def base(self) -> TopicName:
        """The topic that the row calls ``x``; its name ends with a dot, and no short name has one."""
        unique = f"{self.id.replace('-', '_')}."
        return TopicName.of(self.row.domain, TENANT, self.row.namespace, unique)

    @property
    def topic(self) -> TopicName:
        """The name that is used."""
        return self.named(self.row.name)

    def named(self, short: str) -> TopicName:
        """The topic that the row calls ``short``."""
        base = self.base
        return TopicName.of(base.domain, base.tenant, base.namespace, base.local_name + short.removeprefix("x"))

    def short(self, names: Iterable[str]) -> str:
        """Those of these complete names that belong to this case, as the row calls them."""
        own = str(self.base)
        return " ".join(sorted("x" + name.removeprefix(own) for name in names if name.startswith(own))) or NOTHING

    @property
    def expected(self) -> str:
        """Our answer."""
        answer = self.row.answers[self.question]
        text = answer if isinstance(answer, str) else answer[self.front_end]
        return self._audible(text)

    @property
    def left(self) -> str:
        """The records afterwards, with us."""
        return self.row.left.get(self.question, self.row.there)

    @property
    def differs(self) -> Differs | None:
        """How real Pulsar differs."""
        return self.row.differs.get(f"{self.front_end} {self.question}") or self.row.differs.get(self.question)

    @property
    def expected_of_real(self) -> str:
        return self._audible(self.differs.answer) if self.differs else self.expected

    @property
    def left_by_real(self) -> str:
        return self.differs.left if self.differs and self.differs.left is not None else self.left

    def _audible(self, answer: str) -> str:
        if self.front_end == "official-http" and answer == NOT_FOUND:
            return "ConnectError"  # what the C++ family makes of status 404
        return answer.partition(":")[0] if self.front_end in SILENT_FRONT_ENDS else answer


def opened(there: str, name: str, partitions: int, domain: Domain) -> str:
    """The records after the name was opened, which has so many partitions (0 = it is one topic)."""
    if domain == NON_PERSISTENT:
        return there
    names = [f"{name}-partition-{index}" for index in range(partitions)] or [name]
    return " ".join(sorted({*there.split(), *names}))
