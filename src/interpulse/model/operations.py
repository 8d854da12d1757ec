"""Table of operations of the admin API: method, path, required permission and subject.

The routes of the broker, the admin client, the changes of replication and the actions of the console are made from it.
``{name}`` is a part of a path, ``{domain}`` one of the two topic domains.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from urllib.parse import quote, urlencode

from interpulse.model.errors import InvalidRequest
from interpulse.model.names import NamespaceName, TopicName, encode_local_name
from interpulse.model.permissions import NamespaceOperation, TopicOperation

if TYPE_CHECKING:
    from interpulse.model.policies.catalogue import PolicyAtLevel

Subject = Literal["topic", "subscription", "message", "schema", "namespace", "tenant", "cluster", "policy", "broker"]
"""Thing that a refusal with status 404 misses, unless its reason names another."""

NAMESPACE_PATH: Final = "/admin/v2/namespaces/{tenant}/{namespace}"
TOPIC_PATH: Final = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"

_PART: Final = re.compile(
    r"{domain}/{tenant}/{namespace}/{topic}|{tenant}/{namespace}/{topic}|{tenant}/{namespace}|{\w+}"
)


class Access(Enum):
    """Permission that is not an operation on one namespace or topic."""

    OPEN = auto()
    """Every caller, even without credentials."""
    ANY_ROLE = auto()
    """Every authenticated role."""
    SUPER_USER = auto()
    TENANT_ADMIN = auto()
    TENANT_ITSELF = auto()
    """Administrators of the tenant. Others do not learn if it exists."""
    POLICY = auto()
    """Administrators of the tenant, with the refusal of Pulsar for policies."""


Permission = Access | NamespaceOperation | TopicOperation


class Encoded(str):
    """Part of a path that is encoded already."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AdminRequest:
    """Request to the admin API. ``path`` is encoded and has its query, ``body`` is sent as JSON."""

    method: str
    path: str
    body: Any = None
    subject: Subject = "broker"

    def to_json(self) -> dict[str, Any]:
        return {"method": self.method, "path": self.path, "body": self.body}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the admin API."""

    method: str
    path: str
    permission: Permission
    subject: Subject = "broker"

    def path_of(self, *names: object) -> str:
        """Return the path with these names, encoded, in the places of its parts.

        A topic or a namespace, a value or text, takes all parts of its name. Raise InvalidTopicName, and InvalidRequest
        for an empty name, which brokers take for all names.
        """
        remaining = iter(names)
        path = _PART.sub(lambda part: _encoded(part[0], next(remaining)), self.path)
        assert next(remaining, None) is None, f"{self.path} has fewer parts than {names}"
        return path

    def request(self, *names: object, body: Any = None, **query: object) -> AdminRequest:
        """Return the request for these names; see `path_of`."""
        fields = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}
        path = self.path_of(*names) + (f"?{urlencode(fields)}" if fields else "")
        return AdminRequest(self.method, path, body, self.subject)


def _encoded(part: str, name: object) -> str:
    if part.endswith("{topic}"):
        topic = TopicName.parse(str(name))
        return topic.rest_path if part.startswith("{domain}") else topic.base.rest_path.partition("/")[2]
    if part.endswith("{namespace}"):
        return str(NamespaceName.parse(str(name)))
    if name == "":
        raise InvalidRequest(f"The name of a {_WORDS.get(part, part[1:-1])} must not be empty")
    if isinstance(name, Encoded):
        return name
    # Brokers decode subscriptions twice; otherwise a + or % in the name would not survive.
    return quote(encode_local_name(str(name)) if part == "{subscription}" else str(name), safe="")


_WORDS: Final = {"{failure_domain}": "failure domain", "{policy}": "namespace isolation policy"}

_TENANT: Final = "/admin/v2/tenants/{tenant}"


class Tenants:
    """Operations on tenants."""

    LIST = Operation("GET", "/admin/v2/tenants", Access.SUPER_USER, "tenant")
    GET = Operation("GET", _TENANT, Access.TENANT_ITSELF, "tenant")
    CREATE = Operation("PUT", _TENANT, Access.TENANT_ITSELF, "tenant")
    UPDATE = Operation("POST", _TENANT, Access.TENANT_ITSELF, "tenant")
    DELETE = Operation("DELETE", _TENANT, Access.TENANT_ITSELF, "tenant")


_CLUSTER: Final = "/admin/v2/clusters/{cluster}"
_DOMAIN: Final = f"{_CLUSTER}/failureDomains/{{failure_domain}}"
_ISOLATION: Final = f"{_CLUSTER}/namespaceIsolationPolicies"


class Clusters:
    """Operations on clusters and their failure domains."""

    LIST = Operation("GET", "/admin/v2/clusters", Access.ANY_ROLE, "cluster")
    GET = Operation("GET", _CLUSTER, Access.SUPER_USER, "cluster")
    CREATE = Operation("PUT", _CLUSTER, Access.SUPER_USER, "cluster")
    UPDATE = Operation("POST", _CLUSTER, Access.SUPER_USER, "cluster")
    DELETE = Operation("DELETE", _CLUSTER, Access.SUPER_USER, "cluster")
    GET_PEERS = Operation("GET", f"{_CLUSTER}/peers", Access.SUPER_USER, "cluster")
    SET_PEERS = Operation("POST", f"{_CLUSTER}/peers", Access.SUPER_USER, "cluster")
    GET_MIGRATION = Operation("GET", f"{_CLUSTER}/migrate", Access.SUPER_USER, "cluster")
    SET_MIGRATION = Operation("POST", f"{_CLUSTER}/migrate", Access.SUPER_USER, "cluster")
    LIST_DOMAINS = Operation("GET", f"{_CLUSTER}/failureDomains", Access.SUPER_USER, "cluster")
    GET_DOMAIN = Operation("GET", _DOMAIN, Access.SUPER_USER, "cluster")
    SET_DOMAIN = Operation("POST", _DOMAIN, Access.SUPER_USER, "cluster")
    DELETE_DOMAIN = Operation("DELETE", _DOMAIN, Access.SUPER_USER, "cluster")


class IsolationPolicies:
    """Operations on namespace isolation policies."""

    LIST = Operation("GET", _ISOLATION, Access.SUPER_USER, "cluster")
    LIST_BROKERS = Operation("GET", f"{_ISOLATION}/brokers", Access.SUPER_USER, "cluster")
    GET_BROKER = Operation("GET", f"{_ISOLATION}/brokers/{{broker}}", Access.SUPER_USER, "cluster")
    GET = Operation("GET", f"{_ISOLATION}/{{policy}}", Access.SUPER_USER, "cluster")
    SET = Operation("POST", f"{_ISOLATION}/{{policy}}", Access.SUPER_USER, "cluster")
    DELETE = Operation("DELETE", f"{_ISOLATION}/{{policy}}", Access.SUPER_USER, "cluster")


_BROKERS: Final = "/admin/v2/brokers"
_CONFIGURATION: Final = f"{_BROKERS}/configuration"


class Brokers:
    """Operations on brokers, and the states that they report."""

    LIST = Operation("GET", _BROKERS, Access.SUPER_USER, "cluster")
    LIST_OF_CLUSTER = Operation("GET", f"{_BROKERS}/{{cluster}}", Access.SUPER_USER, "cluster")
    GET_OWNED = Operation("GET", f"{_BROKERS}/{{cluster}}/{{broker}}/ownedNamespaces", Access.SUPER_USER)
    CHECK_BACKLOG_QUOTAS = Operation("GET", f"{_BROKERS}/backlog-quota-check", Access.SUPER_USER)
    GET_LEADER = Operation("GET", f"{_BROKERS}/leaderBroker", Access.SUPER_USER)
    CHECK_HEALTH = Operation("GET", f"{_BROKERS}/health", Access.SUPER_USER)
    CHECK_READY = Operation("GET", f"{_BROKERS}/ready", Access.ANY_ROLE)
    GET_VERSION = Operation("GET", f"{_BROKERS}/version", Access.ANY_ROLE)
    LIST_DYNAMIC = Operation("GET", _CONFIGURATION, Access.SUPER_USER)
    GET_DYNAMIC = Operation("GET", f"{_CONFIGURATION}/values", Access.SUPER_USER)
    GET_RUNTIME = Operation("GET", f"{_CONFIGURATION}/runtime", Access.SUPER_USER)
    SET_DYNAMIC = Operation("POST", f"{_CONFIGURATION}/{{key}}/{{value}}", Access.SUPER_USER)
    DELETE_DYNAMIC = Operation("DELETE", f"{_CONFIGURATION}/{{key}}", Access.SUPER_USER)
    AWAIT_CHANGES = Operation("GET", f"{_BROKERS}/metadata/changes", Access.ANY_ROLE)
    IS_ALIVE = Operation("GET", "/livez", Access.OPEN)
    IS_READY = Operation("GET", "/readyz", Access.OPEN)
    HAS_STATUS_FILE = Operation("GET", "/status.html", Access.OPEN)
    GET_METRICS = Operation("GET", "/metrics", Access.OPEN)


def _namespace(method: str, below: str, permission: Permission = Access.POLICY) -> Operation:
    return Operation(method, f"{NAMESPACE_PATH}/{below}", permission, "namespace")


class Namespaces:
    """Operations on namespaces, their bundles and properties."""

    LIST = Operation("GET", "/admin/v2/namespaces/{tenant}", Access.TENANT_ADMIN, "tenant")
    GET_POLICIES = Operation("GET", NAMESPACE_PATH, Access.POLICY, "namespace")
    CREATE = Operation("PUT", NAMESPACE_PATH, Access.TENANT_ADMIN, "tenant")
    DELETE = Operation("DELETE", NAMESPACE_PATH, Access.TENANT_ADMIN, "namespace")
    LIST_TOPICS = _namespace("GET", "topics", NamespaceOperation.GET_TOPICS)
    GET_BUNDLES = _namespace("GET", "bundles", NamespaceOperation.GET_BUNDLE)
    UNLOAD = _namespace("PUT", "unload", Access.SUPER_USER)
    UNLOAD_BUNDLE = _namespace("PUT", "{bundle}/unload", Access.SUPER_USER)
    SPLIT_BUNDLE = _namespace("PUT", "{bundle}/split", Access.SUPER_USER)
    CLEAR = _namespace("POST", "clearBacklog", NamespaceOperation.CLEAR_BACKLOG)
    CLEAR_ONE = _namespace("POST", "clearBacklog/{subscription}", NamespaceOperation.CLEAR_BACKLOG)
    CLEAR_BUNDLE = _namespace("POST", "{bundle}/clearBacklog", NamespaceOperation.CLEAR_BACKLOG)
    CLEAR_BUNDLE_ONE = _namespace("POST", "{bundle}/clearBacklog/{subscription}", NamespaceOperation.CLEAR_BACKLOG)
    UNSUBSCRIBE = _namespace("POST", "unsubscribe/{subscription}", NamespaceOperation.UNSUBSCRIBE)
    UNSUBSCRIBE_BUNDLE = _namespace("POST", "{bundle}/unsubscribe/{subscription}", NamespaceOperation.UNSUBSCRIBE)
    GET_CLUSTERS = _namespace("GET", "replication")
    SET_CLUSTERS = _namespace("POST", "replication")
    GET_ALLOWED_CLUSTERS = _namespace("GET", "allowedClusters")
    SET_ALLOWED_CLUSTERS = _namespace("POST", "allowedClusters")
    GET_QUOTAS = _namespace("GET", "backlogQuotaMap")
    SET_QUOTA = _namespace("POST", "backlogQuota")
    REMOVE_QUOTA = _namespace("DELETE", "backlogQuota")
    GET_LEGACY_STRATEGY = _namespace("GET", "schemaAutoUpdateCompatibilityStrategy")
    SET_LEGACY_STRATEGY = _namespace("PUT", "schemaAutoUpdateCompatibilityStrategy")
    GET_PROPERTIES = _namespace("GET", "properties")
    ADD_PROPERTIES = _namespace("PUT", "properties")
    CLEAR_PROPERTIES = _namespace("DELETE", "properties")
    GET_PROPERTY = _namespace("GET", "property/{key}")
    SET_PROPERTY = _namespace("PUT", "property/{key}/{value}")
    REMOVE_PROPERTY = _namespace("DELETE", "property/{key}")
    GET_FAILOVER_ROLE = _namespace("GET", "failover")
    SET_FAILOVER_ROLE = _namespace("POST", "failover")
    APPLY_FAILOVER_ROLE = _namespace("POST", "failover/apply", Access.SUPER_USER)
    SET_MIGRATED = _namespace("POST", "migration")


def _topic(method: str, below: str, permission: Permission = Access.POLICY, subject: Subject = "topic") -> Operation:
    return Operation(method, f"{TOPIC_PATH}/{below}", permission, subject)


class Grants:
    """Operations on permissions."""

    GET = _namespace("GET", "permissions", NamespaceOperation.GET_PERMISSION)
    GRANT = _namespace("POST", "permissions/{role}", NamespaceOperation.GRANT_PERMISSION)
    REVOKE = _namespace("DELETE", "permissions/{role}", NamespaceOperation.REVOKE_PERMISSION)
    GET_OF_SUBSCRIPTIONS = _namespace("GET", "permissions/subscription", NamespaceOperation.GET_PERMISSION)
    GRANT_ON_SUBSCRIPTION = _namespace(
        "POST", "permissions/subscription/{subscription}", NamespaceOperation.GRANT_PERMISSION
    )
    REVOKE_ON_SUBSCRIPTION = Operation(
        "DELETE",
        f"{NAMESPACE_PATH}/permissions/{{subscription}}/{{role}}",
        NamespaceOperation.REVOKE_PERMISSION,
        "subscription",
    )
    GET_OF_TOPIC = _topic("GET", "permissions", Access.TENANT_ADMIN)
    GRANT_ON_TOPIC = _topic("POST", "permissions/{role}", Access.TENANT_ADMIN)
    REVOKE_ON_TOPIC = _topic("DELETE", "permissions/{role}", Access.TENANT_ADMIN)
    GET_AUTH_MODE = _namespace("GET", "subscriptionAuthMode")
    SET_AUTH_MODE = _namespace("POST", "subscriptionAuthMode")


class Replication:
    """Operations on the state of replication."""

    GET_STATUS = _namespace("GET", "replication/status")
    REPORT_STATUS = _namespace("POST", "replication/status")
    LIST_TOPICS = _namespace("GET", "replication/topics")
    GET_GLOBAL_POLICIES = _namespace("GET", "replication/globalTopicPolicies")
    GET_DISPATCH_RATES = _namespace("GET", "replication/dispatchRates")
    GET_ACKNOWLEDGEMENTS = _namespace("GET", "acknowledgements")
    GET_STATUS_OF_TOPIC = _topic("GET", "replication/status")
    REPORT_STATUS_OF_TOPIC = _topic("POST", "replication/status")


_TOPICS: Final = "/admin/v2/{domain}/{tenant}/{namespace}"


class Topics:
    """Operations on topics as a whole."""

    LIST = Operation("GET", _TOPICS, NamespaceOperation.GET_TOPICS, "namespace")
    LIST_PARTITIONED = Operation("GET", f"{_TOPICS}/partitioned", NamespaceOperation.GET_TOPICS, "namespace")
    CREATE = Operation("PUT", TOPIC_PATH, NamespaceOperation.CREATE_TOPIC, "namespace")
    DELETE = Operation("DELETE", TOPIC_PATH, NamespaceOperation.DELETE_TOPIC, "topic")
    GET_PARTITIONS = _topic("GET", "partitions", TopicOperation.LOOKUP)
    CREATE_PARTITIONED = _topic("PUT", "partitions", Access.POLICY, "namespace")
    EXPAND = _topic("POST", "partitions")
    DELETE_PARTITIONED = _topic("DELETE", "partitions", NamespaceOperation.DELETE_TOPIC)
    CREATE_MISSED_PARTITIONS = _topic("POST", "createMissedPartitions", TopicOperation.LOOKUP)
    GET_PROPERTIES = _topic("GET", "properties", TopicOperation.GET_METADATA)
    UPDATE_PROPERTIES = _topic("PUT", "properties", TopicOperation.UPDATE_METADATA)
    REMOVE_PROPERTY = _topic("DELETE", "properties", TopicOperation.DELETE_METADATA)
    TRUNCATE = _topic("DELETE", "truncate", Access.TENANT_ADMIN)
    TRIM = _topic("POST", "trim", TopicOperation.TRIM_TOPIC)
    UNLOAD = _topic("PUT", "unload", TopicOperation.UNLOAD)
    COMPACT = _topic("PUT", "compaction", TopicOperation.COMPACT)
    GET_COMPACTION = _topic("GET", "compaction", TopicOperation.COMPACT)
    TERMINATE = _topic("POST", "terminate", TopicOperation.TERMINATE)
    TERMINATE_PARTITIONED = _topic("POST", "terminate/partitions", TopicOperation.TERMINATE)
    GET_STATS = _topic("GET", "stats", TopicOperation.GET_STATS)
    GET_PARTITIONED_STATS = _topic("GET", "partitioned-stats", TopicOperation.GET_STATS)
    GET_INTERNAL_STATS = _topic("GET", "internalStats", TopicOperation.GET_STATS)
    GET_INTERNAL_INFO = _topic("GET", "internal-info", TopicOperation.GET_STATS)
    GET_PARTITIONED_INTERNAL_STATS = _topic("GET", "partitioned-internalStats", TopicOperation.GET_STATS)
    REMOVE_POLICIES = _topic("DELETE", "policies")
    GET_QUOTAS = _topic("GET", "backlogQuotaMap")
    SET_QUOTA = _topic("POST", "backlogQuota")
    REMOVE_QUOTA = _topic("DELETE", "backlogQuota")


class Messages:
    """Operations that read single messages."""

    PEEK = _topic("GET", "subscription/{subscription}/position/{position}", TopicOperation.PEEK_MESSAGES, "message")
    EXAMINE = _topic("GET", "examinemessage", TopicOperation.PEEK_MESSAGES, "message")
    GET = _topic("GET", "ledger/{ledger}/entry/{entry}", TopicOperation.PEEK_MESSAGES, "message")
    GET_ID_AT = _topic("GET", "messageid/{time}", TopicOperation.PEEK_MESSAGES)
    GET_LAST_ID = _topic("GET", "lastMessageId", TopicOperation.PEEK_MESSAGES)


def _subscription(method: str, below: str, permission: Permission, subject: Subject = "subscription") -> Operation:
    return _topic(method, f"subscription/{{subscription}}{below}", permission, subject)


class Subscriptions:
    """Operations on subscriptions."""

    LIST = _topic("GET", "subscriptions", TopicOperation.GET_SUBSCRIPTIONS)
    CREATE = _subscription("PUT", "", TopicOperation.SUBSCRIBE, "topic")
    DELETE = _subscription("DELETE", "", TopicOperation.UNSUBSCRIBE)
    RESET_TO_TIME = _subscription("POST", "/resetcursor/{time}", TopicOperation.RESET_CURSOR)
    RESET_TO_MESSAGE = _subscription("POST", "/resetcursor", TopicOperation.RESET_CURSOR)
    SKIP = _subscription("POST", "/skip/{count}", TopicOperation.SKIP)
    SKIP_ALL = _subscription("POST", "/skip_all", TopicOperation.SKIP)
    EXPIRE = _subscription("POST", "/expireMessages/{seconds}", TopicOperation.EXPIRE_MESSAGES)
    EXPIRE_UPTO = _subscription("POST", "/expireMessages", TopicOperation.EXPIRE_MESSAGES)
    EXPIRE_ALL = _topic("POST", "all_subscription/expireMessages/{seconds}", TopicOperation.EXPIRE_MESSAGES)
    ANALYZE_BACKLOG = _subscription("POST", "/analyzeBacklog", TopicOperation.CONSUME)
    GET_BACKLOG_SIZE = _topic("PUT", "backlogSize", TopicOperation.GET_BACKLOG_SIZE)
    IS_REPLICATED = _subscription(
        "GET", "/replicatedSubscriptionStatus", TopicOperation.GET_REPLICATED_SUBSCRIPTION_STATUS
    )
    SET_REPLICATED = _subscription(
        "POST", "/replicatedSubscriptionStatus", TopicOperation.SET_REPLICATED_SUBSCRIPTION_STATUS
    )
    ACKNOWLEDGE = _subscription("POST", "/acknowledgements", TopicOperation.CONSUME)
    GET_PROPERTIES = _subscription("GET", "/properties", TopicOperation.CONSUME)
    SET_PROPERTIES = _subscription("PUT", "/properties", TopicOperation.SUBSCRIBE)


def _schema(method: str, below: str, permission: Permission) -> Operation:
    return Operation(method, f"/admin/v2/schemas/{{tenant}}/{{namespace}}/{{topic}}/{below}", permission, "schema")


class Schemas:
    """Operations on schemas."""

    GET = _schema("GET", "schema", TopicOperation.GET_METADATA)
    GET_VERSION = _schema("GET", "schema/{version}", TopicOperation.GET_METADATA)
    GET_HISTORY = _schema("GET", "schemas", TopicOperation.GET_METADATA)
    UPLOAD = _schema("POST", "schema", TopicOperation.PRODUCE)
    DELETE = _schema("DELETE", "schema", Access.TENANT_ADMIN)
    FIND_VERSION = _schema("POST", "version", TopicOperation.GET_METADATA)
    TEST_COMPATIBILITY = _schema("POST", "compatibility", Access.TENANT_ADMIN)


_LOOKUP: Final = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"


class Lookups:
    """Lookups of topics."""

    FIND = Operation("GET", _LOOKUP, TopicOperation.LOOKUP, "topic")
    FIND_MANY = Operation("POST", "/lookup/v2/topics", Access.ANY_ROLE, "topic")
    GET_BUNDLE = Operation("GET", f"{_LOOKUP}/bundle", NamespaceOperation.GET_BUNDLE, "topic")


class PolicyOperations(NamedTuple):
    """Operations on one policy of a namespace or of a topic."""

    get: Operation
    set: Operation
    remove: Operation


def policy_operations(entry: PolicyAtLevel) -> PolicyOperations:
    """Return the operations on a policy. A policy that cannot be removed is removed by setting no value."""
    level, make = entry.level, _namespace if entry.level is entry.policy.namespace else _topic
    delays = entry.attribute == "delayed_delivery" and make is _namespace
    permission = Access.SUPER_USER if delays else Access.POLICY  # as in Pulsar
    setter = make(level.method, level.path, permission)
    removable = level.removable or level.cleared_by == "DELETE"
    return PolicyOperations(
        make("GET", level.path), setter, make("DELETE", level.path, permission) if removable else setter
    )
