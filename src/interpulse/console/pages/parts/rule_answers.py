"""The answers that the rules of topics give for a name, with the rule and the policy that decided. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from interpulse.model.changes import AskRemotes, Decision
from interpulse.model.errors import PulsarError
from interpulse.model.topics import PartitionedTopicMetadata, Requester, TopicKind
from interpulse.rules.topic_view import NamespaceStanding, TopicView, existence
from interpulse.rules.topics import decide_lookup, decide_open, decide_partitions

GOOD: Final = "good"
WARN: Final = "warn"
BAD: Final = "bad"


@dataclass(frozen=True, slots=True)
class Ground:
    """The reason why a name exists, or why asking for it may or may not create it."""

    allows: bool
    rule: str
    policy: str = ""
    """The policy or setting that decided; empty if none did."""


@dataclass(frozen=True, slots=True)
class Way:
    """A kind of client, and the answer that it gets."""

    who: str
    mood: str
    """``good`` for admitted, ``warn`` for admitted with a creation, ``bad`` for refused."""

    answer: str
    error: str
    """The wire code and the HTTP status of a refusal."""

    rule: str
    policy: str


def ways(view: TopicView, policy: str) -> list[Way]:
    """Return the answers for all kinds of clients. ``view`` has to hold the partition records.

    ``policy`` is the policy on missing topics in words, with its level: the namespace or the broker.
    """
    lookup = _way("Lookup", view, policy, lambda: decide_lookup(view), lambda _: (GOOD, "names the broker"))
    return [
        lookup,
        _partitions(view, policy),
        _client("Producer", view, policy),
        _client("Consumer", view, policy),
        _opens("Replicator", view, policy, Requester.REPLICATOR),  # it opens each name as it is, partition or not
    ]


def ground(view: TopicView, policy: str, *, by: Requester = Requester.CLIENT) -> Ground:
    """Return the first reason that holds, in the order of `topic_view.existence` and `topic_view.may_create`."""
    stored, name = existence(view), view.name
    if name.namespace_name.is_heartbeat:
        return Ground(True, "topics of brokers' own health checks always exist")
    if stored.kind is TopicKind.PARTITIONED:
        return Ground(True, f"it exists: its partition metadata has {stored.partitions:,} partitions (PIP-344, row 1)")
    if stored.kind is not TopicKind.ABSENT:
        return Ground(True, "it exists: it has a record (PIP-344, row 2)")
    if view.namespace is NamespaceStanding.DELETED:
        return Ground(False, "its namespace is being deleted")
    if not name.creatable:
        return Ground(False, "no topic can be created under such a name")
    by_replicator = by is Requester.REPLICATOR and view.auto_creation.replicator_allowed
    if by_replicator and not view.base_metadata:
        return Ground(True, "it is missing, and replicators may create topics (PIP-433)", policy)
    if view.system_topics_enabled and name.is_system:
        return Ground(True, "it is missing, and system topics may always be created", "broker: systemTopicEnabled")
    if name.is_partition and view.base_metadata:
        return _of_partition(view)
    rule = "it is missing, and the policy on missing topics decides (PIP-344, rows 3 to 7)"
    return Ground(view.auto_creation.allowed, rule, policy)


def _of_partition(view: TopicView) -> Ground:
    if view.deletion_begun:
        return Ground(False, "the topic that it is a partition of is being deleted")
    if view.name.partition_index < view.partitions:
        rule = "it is missing, but its partition metadata has it: it is created again whatever policies say"
        return Ground(True, rule)
    return Ground(False, f"its topic has {view.partitions:,} partitions, and it would be one beyond them")


def _partitions(view: TopicView, policy: str) -> Way:

    def words(decision: Any) -> tuple[str, str]:
        if isinstance(decision, AskRemotes):
            names = ", ".join(view.remotes_to_ask)
            return WARN, f"asks {names} first: an existing topic is created with its partition count"
        count = decision.answer
        if decision.changes:
            return WARN, f"creates a partitioned topic of {count:,} partitions"
        return GOOD, f"{count:,} partitions" if count else "0: no partitions"

    return _way("Partition metadata", view, policy, lambda: decide_partitions(view, create=True), words)


def _client(who: str, view: TopicView, policy: str) -> Way:
    """Return the way of a client, which asks for the partition metadata first and opens the topics it names."""
    try:
        decision = decide_partitions(view, create=True)
    except PulsarError as error:
        return _refused(who, error, ground(view, policy))
    if isinstance(decision, AskRemotes):
        return replace(_partitions(view, policy), who=who)
    if not decision.answer:
        return _opens(who, view, policy, Requester.CLIENT)
    return _opens_partitions(who, view, policy, decision)


def _opens(who: str, view: TopicView, policy: str, by: Requester) -> Way:
    return _way(
        who,
        view,
        policy,
        lambda: decide_open(view, by=by, create=True),
        lambda decision: (WARN, "creates the topic and opens it") if decision.changes else (GOOD, "opens the topic"),
        by=by,
    )


def _opens_partitions(who: str, view: TopicView, policy: str, decision: Decision[int]) -> Way:
    count = decision.answer
    metadata = {view.name.base: view.base_metadata or PartitionedTopicMetadata(count)}
    missing = [index for index in range(count) if index not in view.partition_records]
    first = missing[0] if missing else 0
    of_partition = replace(
        view, name=view.name.partition(first), metadata=metadata, recorded=first in view.partition_records
    )
    try:
        decide_open(of_partition, by=Requester.CLIENT, create=True)
    except PulsarError as error:
        return _refused(who, error, ground(of_partition, policy))
    mood, answer = GOOD, f"opens {count:,} partitions"
    if decision.changes:
        mood, answer = WARN, f"creates a topic of {count:,} partitions and opens each"
    elif missing and view.name.is_persistent:
        mood, answer = WARN, f"{answer}, {len(missing):,} of which have no record and are created"
    why = ground(view, policy)
    return Way(who, mood, answer, "", why.rule, why.policy)


def _way(
    who: str,
    view: TopicView,
    policy: str,
    decide: Callable[[], Any],
    words: Callable[[Any], tuple[str, str]],
    *,
    by: Requester = Requester.CLIENT,
) -> Way:
    why = ground(view, policy, by=by)
    try:
        mood, answer = words(decide())
    except PulsarError as error:
        return _refused(who, error, why)
    return Way(who, mood, answer, "", why.rule, why.policy)


def refusal_code(error: PulsarError) -> str:
    """Return the wire code and the HTTP status of a refusal."""
    return f"{error.wire_code.name} ({int(error.wire_code)}), HTTP {error.http_status}"


def _refused(who: str, error: PulsarError, why: Ground) -> Way:
    rule, policy = (why.rule, why.policy) if not why.allows else (type(error).__name__, "")
    return Way(who, BAD, str(error), refusal_code(error), rule, policy)
