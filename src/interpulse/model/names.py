"""Topic and namespace names: parsing, formatting, partition suffixes, system names.

The rules are Pulsar's, with three decisions of ours: domains are lower-cased; four-part names of the old cluster form
are refused, and the error shows the three-part form; names with an empty base part (``-partition-3``) are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from typing import Any, Final, Generic, Literal, TypeVar, overload
from urllib.parse import quote_plus, unquote_plus

from interpulse.model.errors import InvalidTopicName, PreconditionFailed
from interpulse.model.numbers import INT_MAX

__all__ = [
    "CHANGE_EVENTS",
    "NON_PERSISTENT",
    "PERSISTENT",
    "PUBLIC_DEFAULT",
    "SYSTEM_NAMESPACE",
    "Domain",
    "NamespaceName",
    "TopicName",
    "decode_local_name",
    "encode_local_name",
]

Domain = Literal["persistent", "non-persistent"]
PERSISTENT: Final = "persistent"
NON_PERSISTENT: Final = "non-persistent"

is_entity_name = re.compile(r"[A-Za-z0-9_\-=:.]+", re.ASCII).fullmatch
"""Returns a match for names that clusters, tenants and namespaces may have."""

_CANONICAL_INDEX = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_HOST_AND_PORT = re.compile(r"[^:]+:[0-9]+", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_PARTITION_SUFFIX: Final = "-partition-"
_TRIMMED: Final = "".join(map(chr, range(0x21)))  # the characters that String.trim removes, in all Java clients
# The characters of Java's Character.isWhitespace: unlike str.isspace, without no-break spaces.
_WHITESPACE: Final = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    "\u2028\u2029\u205f\u3000"
)
_ENTITY_LENGTH_MAX: Final = 1_000  # names of topics contain it, and go into the line of an HTTP request
_LENGTH_KEPT_MAX: Final = 512
"""Longer names are legal, but parsed each time: caching a hundred thousand of them would take too much memory."""
_CREATED_LENGTH_MAX: Final = 4_000
"""The limit of the encoded path: web servers accept lines of 8 KB, and a subscription's name may follow the topic's."""
_TRANSACTION_SNAPSHOTS: Final = (
    "__transaction_buffer_snapshot",
    "__transaction_buffer_snapshot_segments",
    "__transaction_buffer_snapshot_indexes",
)
"""A namespace with transactions has one of these topics, which record the aborted messages."""
_PENDING_ACKNOWLEDGEMENTS: Final = "__transaction_pending_ack"
CHANGE_EVENTS: Final = "__change_events"
"""The local name of the topic that carries the topic policies of its namespace."""
_SYSTEM_LOCAL_NAMES: Final = frozenset({CHANGE_EVENTS, *_TRANSACTION_SNAPSHOTS})


T = TypeVar("T")


class _Kept(Generic[T]):
    """A `functools.cached_property` without the lock of Python before 3.12, which costs more than these values."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> _Kept[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> _Kept[T] | T:
        if instance is None:
            return self
        value = self._compute(instance)
        object.__setattr__(instance, self._name, value)
        return value


def check_entity_name(kind: str, name: str) -> None:
    """Refuse a name that is too long, or has characters other than letters, digits and ``_-=:.``.

    Raise PreconditionFailed. ``kind`` is Cluster, Tenant or Namespace.
    """
    if not is_entity_name(name):
        raise PreconditionFailed(f"{kind} name is not valid: {name[:100]!r} must be letters, digits and _-=:. only")
    if len(name) > _ENTITY_LENGTH_MAX:
        raise PreconditionFailed(f"{kind} name of {len(name)} characters: it may have {_ENTITY_LENGTH_MAX}")


def encode_local_name(local_name: str) -> str:
    """Return a local topic name as in REST paths and metadata keys (Java's form encoding: blank is ``+``)."""
    return quote_plus(local_name, safe="*").replace("~", "%7E")


def decode_local_name(encoded: str) -> str:
    """Return the local name of an encoded one; see :func:`encode_local_name`."""
    return unquote_plus(encoded)


@dataclass(frozen=True, order=True)
class NamespaceName:
    """``tenant/namespace``."""

    tenant: str
    local: str

    @classmethod
    def parse(cls, text: str) -> NamespaceName:
        """Parse ``tenant/namespace``. Raise InvalidTopicName."""
        parts = text.split("/")
        if len(parts) == 3:
            raise InvalidTopicName(
                f"Invalid namespace name: {text}: the form tenant/cluster/namespace is no longer supported, "
                f"use {parts[0]}/{parts[2]}"
            )
        if len(parts) != 2:
            raise InvalidTopicName(f"Invalid namespace name: {text}: expected tenant/namespace")
        return cls.of(parts[0], parts[1])

    @classmethod
    def of(cls, tenant: str, local: str) -> NamespaceName:
        """Join two checked parts. Raise InvalidTopicName if one has a character that is not allowed."""
        for part in (tenant, local):
            if not is_entity_name(part):
                raise InvalidTopicName(
                    f"Invalid namespace name: {tenant}/{local}: {part!r} must be letters, digits and _-=:. only"
                )
        return cls(tenant, local)

    def __str__(self) -> str:
        return self._text

    def __hash__(self) -> int:
        return hash(self._text)  # a string caches its hash, as in a topic's name

    @_Kept
    def _text(self) -> str:
        return f"{self.tenant}/{self.local}"

    @property
    def is_heartbeat(self) -> bool:
        """True for a broker's own health-check namespace, ``pulsar/host:port``."""
        return self.tenant == "pulsar" and _HOST_AND_PORT.fullmatch(self.local) is not None

    @property
    def is_system(self) -> bool:
        """True for ``pulsar/system``, heartbeat and SLA-monitor namespaces."""
        sla_monitor = self.tenant == "sla-monitor" and _HOST_AND_PORT.fullmatch(self.local) is not None
        return (self.tenant == "pulsar" and self.local == "system") or self.is_heartbeat or sla_monitor


PUBLIC_DEFAULT: Final = NamespaceName("public", "default")
SYSTEM_NAMESPACE: Final = NamespaceName("pulsar", "system")


@dataclass(frozen=True)
class TopicName:
    """One complete topic name. ``str()`` returns ``persistent://tenant/namespace/local``."""

    domain: Domain
    tenant: str
    namespace: str
    local_name: str

    @classmethod
    def parse(cls, text: str) -> TopicName:
        """Parse a short or complete name. Raise InvalidTopicName with the text and the reason."""
        return _parse(text) if len(text) <= _LENGTH_KEPT_MAX else _parsed(text)

    @classmethod
    def of(cls, domain: str, tenant: str, namespace: str, local_name: str) -> TopicName:
        """Join four decoded parts, for example of a REST path. Raise InvalidTopicName."""
        text = f"{domain}://{tenant}/{namespace}/{local_name}"
        return _checked(text, domain, tenant, namespace, local_name)

    def __str__(self) -> str:
        return self._text

    def __hash__(self) -> int:
        return hash(self._text)  # a string caches its hash, and names are keys everywhere

    @_Kept
    def _text(self) -> str:
        return f"{self.domain}://{self.tenant}/{self.namespace}/{self.local_name}"

    @_Kept
    def namespace_name(self) -> NamespaceName:
        return _namespace(self.tenant, self.namespace)

    @property
    def is_persistent(self) -> bool:
        return self.domain == PERSISTENT

    @_Kept
    def encoded(self) -> str:
        """Return the local name as in REST paths and metadata keys."""
        encoded = encode_local_name(self.local_name)
        return self.local_name if encoded == self.local_name else encoded  # shares the string of most names

    @_Kept
    def log_name(self) -> str:
        """Return the path of the topic record below ``/managed-ledgers``: ``tenant/namespace/domain/encoded``."""
        return f"{self.tenant}/{self.namespace}/{self.domain}/{self.encoded}"

    @classmethod
    def from_log_name(cls, log_name: str) -> TopicName:
        """Parse a log name; see :attr:`log_name`."""
        tenant, namespace, domain, encoded = log_name.split("/")
        return cls.of(domain, tenant, namespace, decode_local_name(encoded))

    @property
    def rest_path(self) -> str:
        """The part of a REST path after ``/admin/v2/``: ``persistent/tenant/namespace/encoded``."""
        return f"{self.domain}/{self.tenant}/{self.namespace}/{self.encoded}"

    @_Kept
    def partition_index(self) -> int:
        """Return the number after the last ``-partition-`` in canonical form, else -1."""
        _, separator, digits = self.local_name.rpartition(_PARTITION_SUFFIX)
        if not separator or not _CANONICAL_INDEX.fullmatch(digits) or int(digits) > INT_MAX:
            return -1
        return int(digits)

    @property
    def is_partition(self) -> bool:
        return self.partition_index >= 0

    @property
    def base(self) -> TopicName:
        """The partitioned topic of a partition; the topic itself if it is no partition."""
        return self._parent if self.is_partition else self  # a reference to itself would keep the name from being freed

    @_Kept
    def _parent(self) -> TopicName:
        local_name = self.local_name.rpartition(_PARTITION_SUFFIX)[0]
        base = _base if len(local_name) <= _LENGTH_KEPT_MAX else TopicName
        return base(self.domain, self.tenant, self.namespace, local_name)

    def partition(self, index: int) -> TopicName:
        """Return the name of partition ``index``; the name itself if it already has that suffix."""
        suffix = f"{_PARTITION_SUFFIX}{index}"
        if self.local_name.endswith(suffix):
            return self
        return TopicName(self.domain, self.tenant, self.namespace, self.local_name + suffix)

    @property
    def schema_id(self) -> str:
        """The key of the schema history, shared by all partitions and both domains."""
        return f"{self.tenant}/{self.namespace}/{self.base.encoded}"

    def transaction_topics(self, subscriptions: Iterable[str]) -> list[TopicName]:
        """Return topics of which at least one exists if this topic was ever used in transactions."""
        pending = (f"{self.local_name}-{subscription}{_PENDING_ACKNOWLEDGEMENTS}" for subscription in subscriptions)
        first_partitions = (f"{snapshot}{_PARTITION_SUFFIX}0" for snapshot in _TRANSACTION_SNAPSHOTS)
        names = (*_TRANSACTION_SNAPSHOTS, *first_partitions, *pending)
        return [TopicName.of(self.domain, self.tenant, self.namespace, name) for name in names]

    @property
    def is_transaction_internal(self) -> bool:
        if self.local_name.endswith(_PENDING_ACKNOWLEDGEMENTS):
            return True
        in_system = self.is_persistent and self.namespace_name == SYSTEM_NAMESPACE
        return in_system and self.local_name.startswith(("transaction_coordinator_assign", "__transaction_log_"))

    @_Kept
    def is_system(self) -> bool:
        """Return True for topics hidden from lists and exempt from limits and schema policies.

        The consistency check covers them too.
        """
        return (
            self.namespace_name.is_system
            or self.base.local_name in _SYSTEM_LOCAL_NAMES
            or self.base.is_transaction_internal
        )

    @property
    def is_dead_letter_or_retry(self) -> bool:
        """True for a dead-letter or retry topic, which is always created non-partitioned."""
        return self.base.local_name.endswith(("-DLQ", "-RETRY"))

    @property
    def creatable(self) -> bool:
        """False for names that can be read and deleted, but never created."""
        return not self.creation_problem

    @property
    def creation_problem(self) -> str:
        """The reason why the name cannot be created, as the end of a sentence; empty if it can."""
        text = str(self)
        if text != text.strip(_TRIMMED):
            return "must not have leading or trailing whitespace"
        if "\0" in text:
            return "must not contain NUL"
        if len(self.base.rest_path) > _CREATED_LENGTH_MAX:  # it might not fit into the line of an HTTP request
            return f"must not be longer than {_CREATED_LENGTH_MAX} bytes in a URL"
        return ""


@lru_cache(maxsize=1_000)
def _namespace(tenant: str, local: str) -> NamespaceName:
    """Return the shared name of a namespace: as a key it is found without a comparison."""
    return NamespaceName(tenant, local)


@lru_cache(maxsize=10_000)
def _base(domain: Domain, tenant: str, namespace: str, local_name: str) -> TopicName:
    """Return one shared object for all partitions, so that they share its computed values."""
    return TopicName(domain, tenant, namespace, local_name)


@lru_cache(maxsize=100_000)
def _parse(text: str) -> TopicName:
    return _parsed(text)


def _parsed(text: str) -> TopicName:
    domain, separator, rest = text.partition("://")
    if separator:
        return _parse_complete(text, domain, rest)
    parts = text.split("/")
    if len(parts) == 1:
        return _checked(text, PERSISTENT, "public", "default", text)
    if len(parts) == 3:
        return _checked(text, PERSISTENT, *parts)
    raise InvalidTopicName(
        f"Invalid topic name: {text}: a short name is either topic or tenant/namespace/topic, a complete one begins "
        f"with persistent:// or non-persistent://"
    )


def _parse_complete(text: str, domain: str, rest: str) -> TopicName:
    parts = rest.split("/")
    if len(parts) == 4 and all(parts):
        tenant, _, namespace, local_name = parts
        raise InvalidTopicName(
            f"Invalid topic name: {text}: names with a cluster part are no longer supported, "
            f"use {domain}://{tenant}/{namespace}/{local_name}"
        )
    if len(parts) != 3:
        raise InvalidTopicName(f"Invalid topic name: {text}: expected domain://tenant/namespace/topic")
    return _checked(text, domain, *parts)


def _checked(text: str, domain: str, tenant: str, namespace: str, local_name: str) -> TopicName:
    if _SURROGATE.search(text):
        raise InvalidTopicName(f"Invalid topic name: {text!r}: it is not valid UTF-8")
    domain = domain.lower()
    if domain not in (PERSISTENT, NON_PERSISTENT):
        raise InvalidTopicName(f"Invalid topic name: {text}: unknown domain {domain!r}")
    for part in (tenant, namespace):
        if not is_entity_name(part):
            raise InvalidTopicName(f"Invalid topic name: {text}: {part!r} must be letters, digits and _-=:. only")
    if not local_name.strip(_WHITESPACE) or "/" in local_name:
        raise InvalidTopicName(f"Invalid topic name: {text}: the topic part must not be blank or contain '/'")
    # Names that share these parts also share the strings.
    name = TopicName(intern(domain), intern(tenant), intern(namespace), local_name)  # type: ignore[arg-type]
    if "://" in text and text.startswith(domain):
        object.__setattr__(name, "_text", text)  # the complete name, which most callers hold anyway
    base = name
    while base.is_partition:
        base = base.base
        if not base.local_name.strip(_WHITESPACE):
            raise InvalidTopicName(f"Invalid topic name: {text}: the part before the partition suffix is empty")
    return name
