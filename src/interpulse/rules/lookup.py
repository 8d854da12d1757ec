"""Lookup: the broker of a topic, and the answer for many topics at once (PIP-35).

A broker owns whole bundles (`interpulse.rules.bundles`). Nothing
here knows how many brokers there are: an argument names the owner of a bundle, and a lookup of one topic and a batch
ask the same one.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from interpulse.model.brokers import address_for
from interpulse.model.errors import (
    InvalidRequest,
    InvalidTopicName,
    MetadataError,
    NamespaceElsewhere,
    NamespaceNotFound,
    PulsarError,
    RequestTooLarge,
    ServiceNotReady,
)
from interpulse.model.names import NamespaceName, TopicName
from interpulse.rules.bundles import ONE_BUNDLE, bundle_at, lower_ends
from interpulse.rules.topic_view import NamespaceStanding

__all__ = [
    "BatchAnswer",
    "BundlePlaces",
    "LookupFailure",
    "LookupTarget",
    "NamespaceView",
    "Owner",
    "bundle_places",
    "check_batch_size",
    "find_owner",
    "find_peer",
    "requested_topics",
    "sort_by_existence",
    "sort_by_namespace",
    "sort_by_owner",
    "sort_by_permission",
]

View = TypeVar("View")

_REASON_CHARS_MAX: Final = 300
"""A reason repeats the name, which may be long; beside the name itself the answer must still fit a frame."""


# --- one topic --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LookupTarget:
    """The answer to a lookup: the broker to connect to, or with ``redirect`` the one to ask next. "" = not offered."""

    service_url: str
    service_url_tls: str = ""
    web_url: str = ""
    web_url_tls: str = ""
    broker_id: str = ""
    redirect: bool = False
    authoritative: bool = True
    """With ``redirect``: whether that broker shall take the bundle if it has no owner."""
    proxy_through_service_url: bool = False

    def web_address(self, *, tls: bool) -> str:
        """Where a caller of the web service goes on, without a slash at the end. One inside TLS stays there.

        Raises ServiceNotReady if it cannot.
        """
        url = address_for(self.web_url, self.web_url_tls, tls=tls)
        if not url:
            raise ServiceNotReady(
                f"Broker {self.broker_id or self.service_url} offers no web service {'inside' if tls else 'without'} "
                "TLS: ask it by its other address, or set webServicePortTls there"
            )
        return url.rstrip("/")


Owner = Callable[[NamespaceName, str], LookupTarget]
"""The broker of a bundle of a namespace. Raises ServiceNotReady if no broker can own it, MetadataError while it is
being unloaded or its owner cannot be read."""


class NamespaceView:
    """The view of a namespace for lookups, read once for all topics of a batch."""

    __slots__ = ("bundles", "lower_ends", "name", "peer", "serves_all", "standing")

    def __init__(
        self,
        name: NamespaceName,
        standing: NamespaceStanding = NamespaceStanding.SERVED,
        *,
        boundaries: Sequence[str] = ONE_BUNDLE,
        peer: LookupTarget | None = None,
    ) -> None:
        """``peer`` is a cluster that has the namespace in this one's place; only asked where this one does not."""
        self.name = name
        self.standing = standing
        self.serves_all = standing is NamespaceStanding.SERVED or name.is_heartbeat
        """Every topic of the namespace is served here."""
        self.bundles = [bundle_at(boundaries, index) for index in range(len(boundaries) - 1)]
        self.lower_ends = lower_ends(boundaries)
        self.peer = peer

    def serves(self, topic: TopicName) -> bool:
        """Whether this cluster serves the topic: system topics of a namespace that is being deleted too."""
        return self.serves_all or (self.standing is NamespaceStanding.DELETED and topic.is_system)

    def bundle_index(self, topic: TopicName) -> int:
        """The number of the bundle that holds the topic."""
        return bisect_right(self.lower_ends, zlib.crc32(str(topic).encode())) - 1  # `bundle_hash`, once per topic


def find_peer(namespace: NamespaceView) -> LookupTarget:
    """The peer cluster that serves the namespace instead of this one. Raises what refuses its topics if none does."""
    name, standing = namespace.name, namespace.standing
    if standing is NamespaceStanding.MISSING:
        raise NamespaceNotFound(f"Namespace {name} does not exist")
    if standing is NamespaceStanding.DELETED:
        raise NamespaceNotFound(f"Namespace {name} is being deleted")
    peer = namespace.peer
    if peer is None:
        raise NamespaceElsewhere(f"Namespace {name} has no replication clusters, or not the local cluster among them")
    if not (peer.service_url or peer.service_url_tls):
        raise MetadataError(f"Redirected cluster's brokerService url is not configured for namespace {name}")
    return peer


def find_owner(namespace: NamespaceView, index: int, owner: Owner) -> LookupTarget:
    """The owner of this bundle of a namespace that is served here.

    Everything but trouble with metadata means that no broker can take the bundle now: the client asks again.
    """
    try:
        return owner(namespace.name, namespace.bundles[index])
    except (MetadataError, ServiceNotReady):
        raise
    except PulsarError as error:
        raise ServiceNotReady(str(error)) from error


# --- many topics ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LookupFailure:
    """Topics that share a reason why there is no broker for them."""

    error: PulsarError
    topics: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """The answer to a batch while it grows, names as they were asked for. Each goes into one group or one failure.

    Equal targets are one group and equal failures one failure, however many bundles they come from; in each the topics
    stand in the order they were asked for within each step of the rule.
    """

    groups: dict[LookupTarget, list[str]] = field(default_factory=dict)
    failed: dict[tuple[type[PulsarError], str], LookupFailure] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    """How many partitions each base name has, where names were replaced by their partitions."""

    @property
    def failures(self) -> Iterable[LookupFailure]:
        return self.failed.values()

    def fail(self, topic: str, error: PulsarError) -> None:
        """This topic has no broker, because of ``error``."""
        self.failing(error).append(topic)

    def failing(self, error: PulsarError) -> list[str]:
        """The topics that fail for this reason."""
        reason = str(error)
        if len(reason) > _REASON_CHARS_MAX:
            error = type(error)(reason[:_REASON_CHARS_MAX] + "...")
        return self.failed.setdefault((type(error), reason), LookupFailure(error)).topics

    def served(self, target: LookupTarget) -> list[str]:
        """The topics of this target."""
        return self.groups.setdefault(target, [])


def check_batch_size(topics: int, topics_max: int) -> None:
    """Refuse a batch as a whole: one without topics, or with too many. Raises InvalidRequest, RequestTooLarge."""
    if topics == 0:
        raise InvalidRequest("A batch lookup needs at least one topic")
    if topics > topics_max:
        raise RequestTooLarge(
            f"Batch lookup of {topics} topics: at most {topics_max} in one request (maxTopicsPerBatchLookup)"
        )


def requested_topics(names: Iterable[str], answer: BatchAnswer) -> dict[str, TopicName]:
    """The names of a request, each once and in its order; what is no name fails."""
    topics: dict[str, TopicName] = {}
    for name in dict.fromkeys(names):
        try:
            topics[name] = TopicName.parse(name)
        except InvalidTopicName as error:
            answer.fail(name, error)
    return topics


def sort_by_permission(
    topics: Mapping[str, TopicName], refused: Mapping[str, PulsarError], answer: BatchAnswer
) -> dict[str, TopicName]:
    """The topics that may be looked up; the others fail before anything is said about their namespaces."""
    for name, error in refused.items():
        answer.fail(name, error)
    return {name: topic for name, topic in topics.items() if name not in refused}


def sort_by_namespace(
    topics: Mapping[str, TopicName],
    namespaces: Mapping[NamespaceName, NamespaceView | PulsarError],
    answer: BatchAnswer,
) -> dict[str, TopicName]:
    """The topics that this cluster serves; those of other namespaces fail, or go to the peer cluster that has them."""
    if all(isinstance(view, NamespaceView) and view.serves_all for view in namespaces.values()):
        return dict(topics)
    by_parts = _by_parts(namespaces)
    served = {}
    for name, topic in topics.items():
        namespace = by_parts[topic.tenant, topic.namespace]
        if isinstance(namespace, PulsarError):
            answer.fail(name, namespace)
        elif namespace.serves(topic):
            served[name] = topic
        else:
            _answer_elsewhere(name, namespace, answer)
    return served


def _answer_elsewhere(name: str, namespace: NamespaceView, answer: BatchAnswer) -> None:
    """Answer a topic that this cluster does not serve."""
    try:
        answer.served(find_peer(namespace)).append(name)
    except PulsarError as error:
        answer.fail(name, error)


def _by_parts(namespaces: Mapping[NamespaceName, View]) -> dict[tuple[str, str], View]:
    """By tenant and local name: a pair of strings is found twice as fast as a namespace, and this is done per topic."""
    return {(name.tenant, name.local): view for name, view in namespaces.items()}


def sort_by_existence(
    topics: Mapping[str, TopicName],
    counts: Mapping[str, int | PulsarError],
    answer: BatchAnswer,
    *,
    expanded_chars_max: int | None = None,
) -> dict[str, TopicName]:
    """The topics to look up, given their partition counts: those that failed to have one fail.

    With ``expanded_chars_max`` a base name is replaced by its partitions, as long as their names all together are not
    longer. A topic without partitions stands for itself, however many partitions others have.
    """
    wanted: dict[str, TopicName] = {}
    room = expanded_chars_max or 0
    for name, topic in topics.items():
        count = counts.get(name, 0)
        if isinstance(count, PulsarError):
            answer.fail(name, count)
        elif expanded_chars_max is None or topic.is_partition:
            wanted[name] = topic
        elif (length := count * len(str(topic.partition(count)))) > room:
            answer.fail(name, _too_many_partitions(topic, count))
        else:
            room -= length
            answer.partitions[name] = count
            wanted |= _partitions(topic, count) if count else {name: topic}
    return wanted


def _partitions(topic: TopicName, count: int) -> dict[str, TopicName]:
    return {str(partition): partition for partition in map(topic.partition, range(count))}


def _too_many_partitions(topic: TopicName, count: int) -> PulsarError:
    return RequestTooLarge(
        f"The {count} partitions of {topic} do not fit the answer beside what was asked for before; "
        f"ask for fewer topics at once, or for partitions by their names"
    )


class BundlePlaces(NamedTuple):
    """The bundles of topics: each once, and for each topic the number of its own among them."""

    bundles: Sequence[tuple[NamespaceView, int]]
    """A namespace, and the number of the bundle there."""
    numbers: Sequence[int]


def bundle_places(topics: Mapping[str, TopicName], namespaces: Mapping[NamespaceName, NamespaceView]) -> BundlePlaces:
    """The bundles of topics of served namespaces."""
    by_parts = _by_parts(namespaces)
    bundles: dict[tuple[NamespaceView, int], int] = {}
    numbers = []
    for topic in topics.values():
        namespace = by_parts[topic.tenant, topic.namespace]
        bundle = namespace, namespace.bundle_index(topic)
        number = bundles.get(bundle)
        if number is None:
            number = bundles[bundle] = len(bundles)
        numbers.append(number)
    return BundlePlaces(list(bundles), numbers)


def sort_by_owner(topics: Iterable[str], places: BundlePlaces, owner: Owner, answer: BatchAnswer) -> None:
    """Answer topics by the owners of their bundles, ``places``. ``owner`` is asked once for each bundle.

    A bundle without owner fails with its topics only.
    """
    answered = [_place(*bundle, owner, answer) for bundle in places.bundles]
    for name, number in zip(topics, places.numbers, strict=True):
        answered[number].append(name)


def _place(namespace: NamespaceView, index: int, owner: Owner, answer: BatchAnswer) -> list[str]:
    try:
        return answer.served(find_owner(namespace, index, owner))
    except PulsarError as error:
        return answer.failing(error)
