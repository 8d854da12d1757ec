"""Lookup: the broker of a topic, and the answer for many topics (PIP-35).

A broker owns whole bundles (`interpulse.rules.bundles`). The rules do not depend on the number of brokers: an argument
returns the owner of a bundle, for a lookup of one topic and for a batch.
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

View = TypeVar("View")

_REASON_CHARS_MAX: Final = 300
"""Maximum length of a reason. It repeats the name, which may be long, and the answer must still fit a frame."""


# --- one topic --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LookupTarget:
    """Answer to a lookup: the broker to connect to, or with ``redirect`` the one to ask next. "" = not offered."""

    service_url: str
    service_url_tls: str = ""
    web_url: str = ""
    web_url_tls: str = ""
    broker_id: str = ""
    redirect: bool = False
    authoritative: bool = True
    """With ``redirect``: True if that broker must take the bundle if it has no owner."""
    proxy_through_service_url: bool = False

    def web_address(self, *, tls: bool) -> str:
        """Return the address at which an HTTP client continues, without a trailing slash. HTTPS stays HTTPS.

        Raise ServiceNotReady if there is none.
        """
        url = address_for(self.web_url, self.web_url_tls, tls=tls)
        if not url:
            raise ServiceNotReady(
                f"Broker {self.broker_id or self.service_url} offers no web service {'inside' if tls else 'without'} "
                "TLS: ask it by its other address, or set webServicePortTls there"
            )
        return url.rstrip("/")


Owner = Callable[[NamespaceName, str], LookupTarget]
"""Function that returns the broker of a bundle.

It raises ServiceNotReady if no broker can own the bundle, and MetadataError while the bundle is being unloaded or its
owner cannot be read.
"""


class NamespaceView:
    """View of a namespace for lookups, read once for all topics of a batch."""

    __slots__ = ("bundles", "lower_ends", "name", "peer", "serves_all", "standing")

    def __init__(
        self,
        name: NamespaceName,
        standing: NamespaceStanding = NamespaceStanding.SERVED,
        *,
        boundaries: Sequence[str] = ONE_BUNDLE,
        peer: LookupTarget | None = None,
    ) -> None:
        """Create a view.

        ``peer`` is a peer cluster that has the namespace; it is used only if this cluster does not.
        """
        self.name = name
        self.standing = standing
        self.serves_all = standing is NamespaceStanding.SERVED or name.is_heartbeat
        """True if every topic of the namespace is served here."""
        self.bundles = [bundle_at(boundaries, index) for index in range(len(boundaries) - 1)]
        self.lower_ends = lower_ends(boundaries)
        self.peer = peer

    def serves(self, topic: TopicName) -> bool:
        """Return True if this cluster serves the topic.

        That includes system topics of a namespace that is being deleted.
        """
        return self.serves_all or (self.standing is NamespaceStanding.DELETED and topic.is_system)

    def bundle_index(self, topic: TopicName) -> int:
        """Return the number of the topic's bundle."""
        return bisect_right(self.lower_ends, zlib.crc32(str(topic).encode())) - 1  # `bundle_hash`, once per topic


def find_peer(namespace: NamespaceView) -> LookupTarget:
    """Return the peer cluster that serves the namespace instead of this one. Raise the refusal if there is none."""
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
    """Return the owner of this bundle of a namespace that is served here.

    Every failure except one of the metadata means that no broker can take the bundle now: the client retries.
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
    """Topics that have no broker for the same reason."""

    error: PulsarError
    topics: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """Growing answer to a batch, with the names as requested. Each name goes into one group or one failure.

    Equal targets form one group and equal failures one failure, across bundles. Within each step of the rule, topics
    keep the order of the request.
    """

    groups: dict[LookupTarget, list[str]] = field(default_factory=dict)
    failed: dict[tuple[type[PulsarError], str], LookupFailure] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    """Partition count of each base name that was replaced by its partitions."""

    @property
    def failures(self) -> Iterable[LookupFailure]:
        return self.failed.values()

    def fail(self, topic: str, error: PulsarError) -> None:
        """Record that this topic has no broker because of ``error``."""
        self.failing(error).append(topic)

    def failing(self, error: PulsarError) -> list[str]:
        """Return the topics that fail for this reason."""
        reason = str(error)
        if len(reason) > _REASON_CHARS_MAX:
            error = type(error)(reason[:_REASON_CHARS_MAX] + "...")
        return self.failed.setdefault((type(error), reason), LookupFailure(error)).topics

    def served(self, target: LookupTarget) -> list[str]:
        """Return the topics of this target."""
        return self.groups.setdefault(target, [])


def check_batch_size(topics: int, topics_max: int) -> None:
    """Refuse a whole batch without topics, or with too many. Raise InvalidRequest or RequestTooLarge."""
    if topics == 0:
        raise InvalidRequest("A batch lookup needs at least one topic")
    if topics > topics_max:
        raise RequestTooLarge(
            f"Batch lookup of {topics} topics: at most {topics_max} in one request (maxTopicsPerBatchLookup)"
        )


def requested_topics(names: Iterable[str], answer: BatchAnswer) -> dict[str, TopicName]:
    """Return the names of a request, each once and in order. Invalid names fail."""
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
    """Return the topics that may be looked up. The others fail before anything about their namespaces is revealed."""
    for name, error in refused.items():
        answer.fail(name, error)
    return {name: topic for name, topic in topics.items() if name not in refused}


def sort_by_namespace(
    topics: Mapping[str, TopicName],
    namespaces: Mapping[NamespaceName, NamespaceView | PulsarError],
    answer: BatchAnswer,
) -> dict[str, TopicName]:
    """Return the topics that this cluster serves. Those of other namespaces fail, or go to the peer cluster."""
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
            try:
                answer.served(find_peer(namespace)).append(name)
            except PulsarError as error:
                answer.fail(name, error)
    return served


def _by_parts(namespaces: Mapping[NamespaceName, View]) -> dict[tuple[str, str], View]:
    """Return the views by tenant and local name.

    Pairs of strings are found twice as fast as namespaces, once per topic.
    """
    return {(name.tenant, name.local): view for name, view in namespaces.items()}


def sort_by_existence(
    topics: Mapping[str, TopicName],
    counts: Mapping[str, int | PulsarError],
    answer: BatchAnswer,
    *,
    expanded_chars_max: int | None = None,
) -> dict[str, TopicName]:
    """Return the topics to look up. Those whose partition count is a failure fail.

    With ``expanded_chars_max`` a base name is replaced by its partitions, as long as their names together are not
    longer. A topic without partitions stands for itself.
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
            too_many = (
                f"The {count} partitions of {topic} do not fit the answer beside what was asked for before; "
                f"ask for fewer topics at once, or for partitions by their names"
            )
            answer.fail(name, RequestTooLarge(too_many))
        else:
            room -= length
            answer.partitions[name] = count
            partitions = map(topic.partition, range(count))
            wanted |= {str(partition): partition for partition in partitions} if count else {name: topic}
    return wanted


class BundlePlaces(NamedTuple):
    """Bundles of topics: each bundle once, and its index for each topic."""

    bundles: Sequence[tuple[NamespaceView, int]]
    """Namespace and bundle number of each bundle."""
    numbers: Sequence[int]


def bundle_places(topics: Mapping[str, TopicName], namespaces: Mapping[NamespaceName, NamespaceView]) -> BundlePlaces:
    """Return the bundles of topics in served namespaces."""
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
    """Answer topics with the owners of their bundles, ``places``. ``owner`` is called once for each bundle.

    A bundle without owner fails only its own topics.
    """
    answered = [_place(*bundle, owner, answer) for bundle in places.bundles]
    for name, number in zip(topics, places.numbers, strict=True):
        answered[number].append(name)


def _place(namespace: NamespaceView, index: int, owner: Owner, answer: BatchAnswer) -> list[str]:
    try:
        return answer.served(find_owner(namespace, index, owner))
    except PulsarError as error:
        return answer.failing(error)
