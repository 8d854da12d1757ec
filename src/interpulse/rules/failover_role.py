"""The role of a namespace in a pair of clusters: its stored form, the order of its epochs, and what it allows.

The role is a property of the namespace, so it is part of Pulsar's policies: ``fenced;epoch=4``, or
``moved;epoch=4;url=pulsar://west.example:6650``. A namespace without the property is active with epoch 0. Every change
of sites has an epoch. A lower epoch than the stored one is refused, so that a tool that was suspended cannot undo a
later change. Unknown fields are ignored, for those of later releases.

Cluster migration (PIP-188) is a redirect here: an active namespace whose cluster or own policies are ``migrated`` has
the role moved until the mark is removed. No topic is terminated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, auto
from typing import Final, NamedTuple

from interpulse.model.clusters import ClusterMigration
from interpulse.model.errors import Conflict, InvalidRequest
from interpulse.model.names import TopicName
from interpulse.model.numbers import LONG_MAX, read_integer
from interpulse.model.policies.policy_documents import NamespacePolicies

ROLE_PROPERTY: Final = "interpulse.failover.role"
URL_PROPERTY: Final = "interpulse.failover.url"
"""Broker service URL to which clients of a migrated namespace are sent, in place of the cluster's."""

MIGRATED_FIELD: Final = "migrated"
"""Field of the policies that marks a namespace as migrated."""

_CONTROL_TOPICS: Final = "interpulse-failover-"
HEARTBEAT: Final = "-heartbeat"
"""End of the name of the topic whose messages are copied from the site that serves to the other one."""

_LANE: Final = re.compile(r"interpulse\..+\..+-->.+\.e\d+(\..+)?")
_SERVICE_URL: Final = re.compile(r"(pulsar|pulsar\+ssl)://[^\s;/?#]+")
_CLUSTER: Final = re.compile(r"[-=:.\w]+")
_CLOSED: Final = ":closed"
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
HOLD_SECONDS_MAX: Final = 3600
"""Longest time for which consumers may be held."""
_SHOWN_MAX: Final = 200


class Role(StrEnum):
    """The role of a namespace at one site."""

    ACTIVE = "active"
    FENCED = "fenced"
    STANDBY = "standby"
    MOVED = "moved"


class Treatment(Enum):
    """The treatment of a client that opens a producer or a consumer."""

    SERVED = auto()
    REFUSED = auto()
    REDIRECTED = auto()


class Serving(NamedTuple):
    """The treatment of local clients. Lanes and replicators are always served."""

    producers: Treatment
    consumers: Treatment
    auto_creation: bool


SERVING: Final[Mapping[Role, Serving]] = {
    Role.ACTIVE: Serving(Treatment.SERVED, Treatment.SERVED, auto_creation=True),
    Role.FENCED: Serving(Treatment.REFUSED, Treatment.SERVED, auto_creation=False),
    Role.STANDBY: Serving(Treatment.REFUSED, Treatment.SERVED, auto_creation=False),
    Role.MOVED: Serving(Treatment.REDIRECTED, Treatment.REDIRECTED, auto_creation=True),
}
"""Treatment of clients in each role. Redirects need a topic, so a moved namespace still creates topics."""

_WORDS: Final[Mapping[Role, str]] = {
    Role.ACTIVE: "is active",
    Role.FENCED: "is fenced for a switch",
    Role.STANDBY: "is standby",
    Role.MOVED: "has moved to another cluster",
}


@dataclass(frozen=True, slots=True)
class FailoverRole:
    """The role of a namespace. ``since`` does not count for equality."""

    role: Role = Role.ACTIVE
    epoch: int = 0
    service_url: str = ""
    """Broker service URL of the site to which clients are redirected; "" without one outside TLS."""
    service_url_tls: str = ""
    subscriptions_ready: bool = False
    """True if the other site has the subscriptions with their acknowledgements: consumers need not drain here."""
    since: str = field(default="", compare=False)
    """ISO time at which the role was set; "" if it is not known."""
    closed_to: str = ""
    """Name of the cluster whose copies are refused, by lanes as by replicators; "" if every cluster may copy."""
    consumers_from: str = ""
    """ISO time until which consumers of replicated subscriptions are refused; "" if they are served."""
    unconfirmed_by: str = ""
    """Name of the peer cluster that has to confirm the stored role first; "" if none has to."""

    def __str__(self) -> str:
        fields = (*self._urls(), *self._refused())
        return ";".join((self.role, f"epoch={self.epoch}", *(f"{name}={value}" for name, value in fields)))

    def _urls(self) -> list[tuple[str, str]]:
        urls = [("url", self.service_url or self.service_url_tls)]
        if self.service_url:
            urls.append(("urlTls", self.service_url_tls))
        return [(name, url) for name, url in urls if url]

    def _refused(self) -> list[tuple[str, str]]:
        lanes = [("lanesFrom", f"{self.closed_to}{_CLOSED}")] if self.closed_to else []
        return [*lanes, ("consumersFrom", self.consumers_from)] if self.consumers_from else lanes

    def holds_consumers(self, time: str) -> bool:
        """Return True if consumers of replicated subscriptions are refused at an ISO time."""
        return time < self.consumers_from

    def stored(self) -> str:
        """Return the value of the property."""
        ready = ";subscriptionsReady=true" if self.subscriptions_ready else ""
        return f"{self}{ready};since={self.since}" if self.since else f"{self}{ready}"

    @property
    def serving(self) -> Serving:
        return SERVING[self.role]

    def about(self, topic: TopicName) -> str:
        """Return the sentence for a client that this role refuses."""
        if self.unconfirmed_by:
            return f"Namespace {topic.namespace_name} waits for the role at {self.unconfirmed_by}, epoch {self.epoch}"
        return f"Namespace {topic.namespace_name} {_WORDS[self.role]}, epoch {self.epoch}"


ACTIVE: Final = FailoverRole()


def parse_role(text: str) -> FailoverRole:
    """Parse the value of the property. Raise InvalidRequest, which names the property, the value and the remedy."""
    word, *parts = text.split(";")
    values = dict(_pair(text, part) for part in parts)
    if word not in list(Role):
        raise _malformed(text, f"{word[:_SHOWN_MAX]!r} is none of {', '.join(Role)}")
    epoch = read_integer(values.get("epoch", ""), most=LONG_MAX)
    if epoch is None or epoch < 0:
        raise _malformed(text, f"epoch must be an integer from 0 to {LONG_MAX}")
    ready = values.get("subscriptionsReady", "false")
    if ready not in ("true", "false"):
        raise _malformed(text, "subscriptionsReady must be true or false")
    role, url, url_tls = Role(word), values.get("url", ""), values.get("urlTls", "")
    if problem := _problem_of_urls(role, url, url_tls):
        raise _malformed(text, problem)
    lanes = values.get("lanesFrom", "")
    if lanes and not (lanes.endswith(_CLOSED) and _is_cluster_name(lanes.removesuffix(_CLOSED))):
        raise _malformed(text, f"lanesFrom must be a cluster name followed by {_CLOSED}")
    closed_to, since = lanes.removesuffix(_CLOSED), values.get("since", "")
    consumers_from = values.get("consumersFrom", "")
    if consumers_from and not _TIME.fullmatch(consumers_from):
        raise _malformed(text, "consumersFrom must be a time in UTC such as 2026-11-21T08:18:27.372Z")
    return FailoverRole(role, epoch, *_by_scheme(url, url_tls), ready == "true", since, closed_to, consumers_from)


def make_role(
    role: Role, epoch: int, *, url: str = "", url_tls: str = "", ready: bool = False, closed_to: str = ""
) -> FailoverRole:
    """Return a role. ``url`` may have either scheme.

    Raise InvalidRequest for an invalid, missing or idle URL, and for an invalid name of a cluster.
    """
    problem = _problem_of_urls(role, url, url_tls)
    if not problem and closed_to and not _is_cluster_name(closed_to):
        problem = f"closedTo must be the name of a cluster, not {closed_to[:_SHOWN_MAX]!r}"
    if problem:
        raise InvalidRequest(f"The role {role} cannot be set: {problem}")
    return FailoverRole(role, epoch, *_by_scheme(url, url_tls), ready, closed_to=closed_to)


def _is_cluster_name(name: str) -> bool:
    return _CLUSTER.fullmatch(name) is not None


def _problem_of_urls(role: Role, url: str, url_tls: str) -> str:
    for name, value in (("url", url), ("urlTls", url_tls)):
        if value and not _SERVICE_URL.fullmatch(value):
            return f"{name} must be pulsar://host:port or pulsar+ssl://host:port, not {value[:_SHOWN_MAX]!r}"
    if role is Role.MOVED and not (url or url_tls):
        return "moved needs a url, the broker service URL of the site that serves the namespace"
    return f"only moved has a url, not {role}" if role is not Role.MOVED and (url or url_tls) else ""


def _by_scheme(url: str, url_tls: str) -> tuple[str, str]:
    return ("", url_tls or url) if url.startswith("pulsar+ssl:") else (url, url_tls)


def _pair(text: str, part: str) -> tuple[str, str]:
    name, equals, value = part.partition("=")
    if not equals:
        raise _malformed(text, f"{part[:_SHOWN_MAX]!r} is not name=value")
    return name, value


def _malformed(text: str, problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"{ROLE_PROPERTY} has the value {text[:_SHOWN_MAX]!r}, but {problem}; set it like fenced;epoch=4 or remove it"
    )


def stored_role(properties: Mapping[str, str]) -> tuple[FailoverRole, str]:
    """Return the role in the properties of a namespace, and the problem if it is malformed: then it is active."""
    text = properties.get(ROLE_PROPERTY)
    if text is None:
        return ACTIVE, ""
    try:
        return parse_role(text), ""
    except InvalidRequest as error:
        return ACTIVE, str(error)


def effective_role(policies: NamespacePolicies, migration: ClusterMigration | None) -> tuple[FailoverRole, str]:
    """Return the role in force, and the problem of a stored value that is ignored; "" if there is none.

    ``migration`` is that of the local cluster. An active namespace is moved while it or its cluster is migrated, to its
    own `URL_PROPERTY` or else to the cluster's URL. Without either it stays active, as in Pulsar.
    """
    role, problem = stored_role(policies.properties)
    migrated = bool(policies.other.get(MIGRATED_FIELD)) or (migration is not None and migration.migrated)
    if role.role is not Role.ACTIVE or not migrated:
        return role, problem
    own = policies.properties.get(URL_PROPERTY, "")
    if own and not _SERVICE_URL.fullmatch(own):
        problem = f"{URL_PROPERTY} has the value {own[:_SHOWN_MAX]!r}; set it like pulsar://host:port or remove it"
        own = ""
    urls = migration or ClusterMigration()
    url, tls = (own, "") if own else (urls.broker_service_url or "", urls.broker_service_url_tls or "")
    if not (url or tls):
        return role, problem
    return FailoverRole(Role.MOVED, role.epoch, *_by_scheme(url, tls), closed_to=role.closed_to), problem


def with_role(policies: NamespacePolicies, role: FailoverRole, since: str) -> NamespacePolicies:
    """Return the policies with this role. Raise Conflict if the stored epoch is higher.

    The same role again changes nothing, so that a call may be repeated.
    """
    stored, problem = stored_role(policies.properties)
    if role.epoch < stored.epoch:
        raise Conflict(f"The namespace has epoch {stored.epoch} ({stored}), so epoch {role.epoch} comes too late")
    if role == stored and not problem and ROLE_PROPERTY in policies.properties:
        return policies
    text = replace(role, since=since).stored()
    return policies.changed(properties={**policies.properties, ROLE_PROPERTY: text})


def with_migrated(
    policies: NamespacePolicies, migration: ClusterMigration | None, *, migrated: bool
) -> NamespacePolicies:
    """Return the policies with or without the mark of migration. Raise Conflict if clients have nowhere to go.

    Raise it also while the namespace has another role than active, which the mark would not change.
    """
    marked = policies.changed(other={**policies.other, MIGRATED_FIELD: migrated})
    own, _ = stored_role(policies.properties)
    if not migrated:
        return marked
    if own.role is not Role.ACTIVE:
        raise Conflict(f"The namespace has the role {own}: migration redirects clients of an active namespace only")
    if effective_role(marked, migration)[0].role is not Role.MOVED:
        raise Conflict(
            "There is no cluster to redirect to: set its URL with clusters update-cluster-migration, "
            f"or in the property {URL_PROPERTY} of the namespace"
        )
    return marked


def unconfirmed(stored: FailoverRole, peer: str) -> FailoverRole:
    """Return the role in force while the peer has not yet confirmed the stored one: nothing new is published."""
    return replace(stored, role=Role.FENCED, unconfirmed_by=peer) if stored.role is Role.ACTIVE else stored


def after_peer(stored: FailoverRole, peer_epoch: int) -> FailoverRole:
    """Return the role to store after an answer of the peer: standby if its epoch is higher, or else the same object."""
    if peer_epoch <= stored.epoch or stored.role not in (Role.ACTIVE, Role.FENCED):
        return stored
    return FailoverRole(Role.STANDBY, peer_epoch)


def is_exempt(topic: TopicName) -> bool:
    """Return True for a topic that is served whatever the role: system topics, and those that control a failover."""
    return topic.is_system or topic.base.local_name.startswith(_CONTROL_TOPICS)


def is_of_one_site(topic: TopicName) -> bool:
    """Return True for a topic of a failover that each site has for itself, so that it is never copied.

    It is held exclusively: a lane that found it before its policy was set would shut an operation out.
    """
    name = topic.base.local_name
    return name.startswith(_CONTROL_TOPICS) and not name.endswith(HEARTBEAT)


def suspended_creation(topic: TopicName, policies: NamespacePolicies | None) -> str:
    """Return the reason why local clients do not create this topic now; "" if the role allows it."""
    if policies is None or is_exempt(topic):
        return ""
    role, _ = stored_role(policies.properties)
    return "" if role.serving.auto_creation else f"{role.about(topic)}: clients do not create topics until it is active"


def is_lane(producer_name: str) -> bool:
    """Return True for the producer name of a replication job's lane, which writes copies."""
    return _LANE.fullmatch(producer_name) is not None


def is_lane_from(producer_name: str, cluster: str) -> bool:
    """Return True for the producer name of a replication job's lane that copies from this cluster."""
    return is_lane(producer_name) and f".{cluster}-->" in producer_name
