"""The table of permissions: the answer that each role gets from each call, at both front ends of any broker.

Every row is a call and the roles that may make it. The others get the refusal of the row; those roles get any answer
that is no refusal, so rows name topics that do not exist where the call would change something.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from interpulse.authentication.tokens import create_token
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient
from tests.support.tokens import SECRET

ROLES: Final = (
    "admin", "acme-admin", "other-admin", "nprod", "ncons", "tprod", "tcons", "nfunc", "scons", "nobody",
)  # fmt: skip
"""A super user, administrators of two tenants, roles with one grant each on the namespace, on the topics ``t`` and
``p``, or on the subscription ``owned``, and one without any."""

SUPER: Final = "admin"
TENANT: Final = f"{SUPER} acme-admin"
PRODUCERS_HERE: Final = f"{TENANT} nprod"
CONSUMERS_HERE: Final = f"{TENANT} ncons"
HERE: Final = f"{TENANT} nprod ncons"
PRODUCERS: Final = f"{PRODUCERS_HERE} tprod"
CONSUMERS: Final = f"{CONSUMERS_HERE} tcons"
CLIENTS: Final = f"{HERE} tprod tcons"
ALL: Final = " ".join(ROLES)

TOPIC: Final = "persistent://acme/app/t"
GONE: Final = "persistent://acme/app/gone"
NO_NAMESPACE: Final = "persistent://acme/none/t"
NO_TENANT: Final = "persistent://none/none/t"


def token(role: str, **more: Any) -> str:
    """A token that the brokers of `settings` accept."""
    return create_token(SECRET, role, signature="HS256", **more)


def settings(directory: Path) -> dict[str, str]:
    """Settings of either broker."""
    path = directory / "secret.key"
    path.write_bytes(SECRET)
    return {
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "tokenSecretKey": path.as_uri(),
        "superUserRoles": "admin",
        "proxyRoles": "proxy",
        "authenticationRefreshCheckSeconds": "1",
        "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
        "brokerClientAuthenticationParameters": f"token:{token('admin')}",
    }


@dataclass(frozen=True)
class Row:
    """One call. ``allowed`` and ``refused`` are those of real Pulsar too, unless ``real`` says otherwise and why."""

    call: str
    allowed: str
    refused: str
    body: Any = None
    real: tuple[str, str] | None = None

    @property
    def id(self) -> str:
        return self.call

    def expected(self, role: str, *, of_real: bool = False) -> str:
        """The answer a role gets."""
        allowed = self.real[0] if of_real and self.real else self.allowed
        return "allowed" if role in allowed.split() else self.refused


def rest(
    method: str, path: str, allowed: str, refused: str, body: Any = None, real: tuple[str, str] | None = None
) -> Row:
    return Row(f"{method} {path}", allowed, refused, body, real)


N: Final = "/admin/v2/namespaces/acme/app"
D: Final = "/admin/v2/persistent/acme/app"
T: Final = f"{D}/t"
G: Final = f"{D}/gone"
S: Final = "/admin/v2/schemas/acme/app/gone"
STRING: Final = {"type": "STRING", "schema": "", "properties": {}}

REST: Final = (
    rest("GET", "/admin/v2/clusters", ALL, "401"),
    rest("GET", "/admin/v2/clusters/standalone", SUPER, "401"),
    rest("DELETE", "/admin/v2/clusters/none", SUPER, "401"),
    rest("GET", "/admin/v2/clusters/standalone/peers", SUPER, "401"),
    rest("GET", "/admin/v2/brokers/health", SUPER, "401"),
    rest("GET", "/admin/v2/brokers/ready", ALL, "401"),
    rest("GET", "/admin/v2/brokers/configuration/runtime", SUPER, "401"),
    rest("POST", "/admin/v2/brokers/configuration/none/1", SUPER, "401"),
    rest("GET", "/admin/v2/nothing-here", ALL, "401"),
    rest("GET", "/admin/v2/tenants", SUPER, "401"),
    rest("GET", "/admin/v2/tenants/acme", TENANT, "401"),
    rest("GET", "/admin/v2/tenants/none", SUPER, "401"),
    rest("PUT", "/admin/v2/tenants/acme", TENANT, "401", {"allowedClusters": ["standalone"]}),
    rest("POST", "/admin/v2/tenants/acme", TENANT, "401", {"adminRoles": ["acme-admin"], "allowedClusters": ["none"]}),
    rest("DELETE", "/admin/v2/tenants/acme", TENANT, "401"),
    rest("DELETE", "/admin/v2/tenants/none", SUPER, "401"),
    rest("GET", "/admin/v2/namespaces/acme", TENANT, "401"),
    rest("GET", "/admin/v2/namespaces/none", SUPER, "404"),
    rest("GET", N, TENANT, "403"),
    rest("GET", "/admin/v2/namespaces/acme/none", TENANT, "403"),
    rest("GET", "/admin/v2/namespaces/none/none", SUPER, "404"),
    rest("PUT", N, TENANT, "401", {}),
    rest("DELETE", "/admin/v2/namespaces/acme/none", TENANT, "401"),
    rest("GET", f"{N}/topics", HERE, "403"),
    rest("GET", f"{N}/bundles", HERE, "403"),
    rest("PUT", "/admin/v2/namespaces/acme/none/unload", SUPER, "401"),
    rest("POST", f"{N}/clearBacklog/none", CONSUMERS_HERE, "403"),
    rest("POST", f"{N}/unsubscribe/none", CONSUMERS_HERE, "403"),
    rest("GET", f"{N}/permissions", TENANT, "403"),
    rest("GET", f"{N}/permissions/subscription", TENANT, "403"),
    rest("POST", f"{N}/permissions/stranger", TENANT, "403", ["functions"]),
    rest("DELETE", f"{N}/permissions/stranger", TENANT, "403"),
    rest("POST", f"{N}/permissions/subscription/strange", TENANT, "403", ["stranger"]),
    rest("DELETE", f"{N}/permissions/strange/somebody", TENANT, "403"),
    rest("GET", f"{N}/replication", TENANT, "403"),
    rest("POST", f"{N}/replication", TENANT, "403", ["standalone"]),
    rest("GET", f"{N}/retention", TENANT, "403"),
    rest("DELETE", f"{N}/retention", TENANT, "403"),
    rest("GET", f"{N}/subscriptionAuthMode", TENANT, "403"),
    rest("POST", f"{N}/subscriptionAuthMode", TENANT, "403", "None"),
    rest("GET", f"{N}/delayedDelivery", TENANT, "403"),
    rest("DELETE", f"{N}/delayedDelivery", SUPER, "401"),
    rest("GET", D, HERE, "403"),
    rest("GET", f"{D}/partitioned", HERE, "403"),
    rest("PUT", T, TENANT, "403"),
    rest("DELETE", G, TENANT, "403"),
    rest("GET", f"{T}/partitions", CLIENTS, "401"),
    rest("GET", f"{G}/partitions", HERE, "401"),
    rest("GET", "/admin/v2/persistent/acme/none/t/partitions", TENANT, "401"),
    rest("GET", "/admin/v2/persistent/none/none/t/partitions", SUPER, "404"),
    rest("GET", f"{G}2/partitions?checkAllowAutoCreation=true", HERE, "401"),
    rest("GET", f"{D}/p-partition-0/partitions", CLIENTS, "401"),
    rest("PUT", f"{D}/p/partitions", TENANT, "403", 2),
    rest("POST", f"{G}/partitions", TENANT, "403", 2),
    rest("DELETE", f"{G}/partitions", TENANT, "403"),
    rest("POST", f"{G}/createMissedPartitions", HERE, "401"),
    rest("GET", f"{T}/properties", CLIENTS, "401"),
    rest("PUT", f"{T}/properties", TENANT, "401", {}, real=(ALL, "every authenticated role could change them")),
    rest("DELETE", f"{T}/properties?key=none", TENANT, "401"),
    rest("DELETE", f"{G}/truncate", TENANT, "401"),
    rest("PUT", f"{G}/unload", TENANT, "401"),
    rest("POST", f"{G}/terminate", TENANT, "401"),
    rest("GET", f"{T}/stats", CLIENTS, "401"),
    rest("GET", f"{G}/stats", HERE, "401"),
    rest("GET", f"{T}/internalStats", CLIENTS, "401"),
    rest("GET", f"{D}/p/partitioned-stats", CLIENTS, "401"),
    rest("GET", f"{T}/lastMessageId", CONSUMERS, "401"),
    rest("GET", f"{T}/permissions", TENANT, "401"),
    rest("POST", f"{T}/permissions/stranger", TENANT, "401", ["functions"]),
    rest("DELETE", f"{T}/permissions/stranger", TENANT, "401"),
    rest("GET", f"{T}/retention", TENANT, "403"),
    rest("GET", f"{T}/subscriptions", CONSUMERS, "401"),
    rest("PUT", f"{T}/subscription/s", CONSUMERS, "401"),
    rest("DELETE", f"{G}/subscription/s", CONSUMERS_HERE, "401"),
    rest("DELETE", f"{G}/subscription/__compaction", CONSUMERS_HERE, "401"),
    rest("POST", f"{T}/subscription/s/skip_all", CONSUMERS, "401"),
    rest("POST", f"{T}/subscription/owned/skip_all", TENANT, "401"),
    rest("POST", f"{T}/subscription/s/resetcursor/1", CONSUMERS, "401"),
    rest("GET", f"{T}/subscription/s/position/1", CONSUMERS, "401"),
    rest("GET", f"{T}/subscription/owned/properties", TENANT, "401"),
    rest("GET", f"{T}/examinemessage", CONSUMERS, "401"),
    rest("GET", f"{T}/messageid/1", CONSUMERS, "401"),
    rest("GET", f"{S}/schema", HERE, "401"),
    rest("GET", f"{S}/schemas", HERE, "401"),
    rest("POST", f"{S}/schema", PRODUCERS_HERE, "401", STRING),
    rest("POST", f"{S}/compatibility", TENANT, "401", STRING),
    rest("GET", "/lookup/v2/topic/persistent/acme/app/t", CLIENTS, "401"),
    rest("GET", "/lookup/v2/topic/persistent/acme/app/p-partition-1", CLIENTS, "401"),
    rest("GET", "/lookup/v2/topic/persistent/acme/app/t/bundle", HERE, "403"),
)  # fmt: skip

METADATA: Final = "4 Client is not authorized to Get Partition Metadata"
LOOKUP: Final = "4 Client is not authorized to Lookup"
PRODUCE: Final = "4 Client is not authorized to Produce"
SUBSCRIBE: Final = "4 Client is not authorized to subscribe"
LIST: Final = "4 Client is not authorized to GetTopicsOfNamespace"
NO_SUCH_TENANT: Final = "11 Tenant or namespace or topic does not exist: none/none"
NOT_ASKED: Final = "schemas could be read and registered by every authenticated role"

BINARY: Final = (
    Row(f"metadata {TOPIC}", CLIENTS, METADATA),
    Row(f"metadata {GONE}3", HERE, METADATA),
    Row(f"metadata {NO_NAMESPACE}", TENANT, METADATA),
    Row(f"metadata {NO_TENANT}", SUPER, NO_SUCH_TENANT),
    Row(f"metadata-create {TOPIC}", CLIENTS, METADATA),
    Row(f"metadata-create {GONE}4", HERE, METADATA),
    Row(f"metadata-create {NO_NAMESPACE}", TENANT, METADATA),
    Row(f"lookup {TOPIC}", CLIENTS, LOOKUP),
    Row(f"lookup {TOPIC[:-1]}p-partition-0", CLIENTS, LOOKUP),
    Row(f"lookup {GONE}", HERE, LOOKUP),
    Row(f"lookup {NO_NAMESPACE}", TENANT, LOOKUP),
    Row(f"lookup {NO_TENANT}", SUPER, "4 Exception occurred while trying to authorize lookup"),
    Row(f"produce {TOPIC}", PRODUCERS, PRODUCE),
    Row(f"produce {GONE}5", PRODUCERS_HERE, PRODUCE),
    Row(f"produce {NO_NAMESPACE}", TENANT, PRODUCE),
    Row(f"produce-with-subscription {TOPIC}", TENANT, PRODUCE),
    Row(f"subscribe {TOPIC}", CONSUMERS, SUBSCRIBE),
    Row(f"subscribe-owned {TOPIC}", TENANT, SUBSCRIBE),
    Row(f"subscribe {GONE}6", CONSUMERS_HERE, SUBSCRIBE),
    Row(f"subscribe {NO_NAMESPACE}", TENANT, SUBSCRIBE),
    Row(f"topics {TOPIC}", HERE, LIST),
    Row(f"topics {NO_NAMESPACE}", TENANT, LIST),
    Row(f"topics {NO_TENANT}", SUPER, "4 Exception occurred while trying to authorize GetTopicsOfNamespace"),
    Row(f"schema {TOPIC}", CLIENTS, "4 Client is not authorized to GetSchema", real=(ALL, NOT_ASKED)),
    Row(
        f"register-schema {TOPIC}", PRODUCERS, "4 Client is not authorized to GetOrCreateSchema", real=(ALL, NOT_ASKED)
    ),
)


class Player:
    """Calls a broker of `settings` in any role."""

    def __init__(self, service_url: str, web_url: str) -> None:
        self._service_url = service_url
        self._web = web_url.removeprefix("http://")

    def prepare(self) -> None:
        """Two tenants, a namespace with two topics, and the grants the roles are named after."""
        for tenant in ("acme", "other"):
            info = {"adminRoles": [f"{tenant}-admin"], "allowedClusters": ["standalone"]}
            self._do("PUT", f"/admin/v2/tenants/{tenant}", info)
        self._do("PUT", N, {"replication_clusters": ["standalone"]})
        self._do("PUT", T)
        self._do("PUT", f"{D}/p/partitions", 2)
        for subscription in ("s", "owned"):
            self._do("PUT", f"{T}/subscription/{subscription}")
        for role, action in (("nprod", "produce"), ("ncons", "consume"), ("nfunc", "functions")):
            self._do("POST", f"{N}/permissions/{role}", [action])
        for role, action in (("tprod", "produce"), ("tcons", "consume")):
            for topic in "tp":
                self._do("POST", f"{D}/{topic}/permissions/{role}", [action])
        self._do("POST", f"{N}/permissions/subscription/owned", ["scons"])

    def rest(self, row: Row, role: str) -> str:
        """``allowed``, or the status of a refusal."""
        method, path = row.call.split(" ", 1)
        status = self.call(role, method, path, row.body)[0]
        refused = status in (401, 403) or (str(status) == row.refused and role not in row.allowed.split())
        return str(status) if refused else "allowed"

    def binary(self, row: Row, role: str) -> str:
        """``allowed``, or the number and the text of a refusal."""
        question, topic = row.call.split(" ", 1)
        with logged_in(self._service_url, role) as client:
            answer = client.ask(_FRAMES[question](topic))
        refusal = _refusal(answer)
        refused = refusal.startswith("4 ") or refusal == row.refused
        return refusal if refused else "allowed"

    def call(
        self, role: str | None, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Status and body of a call; ``role`` None brings no token."""
        sent = dict(headers or {})
        if role is not None:
            sent["Authorization"] = f"Bearer {token(role)}"
        if body is not None:
            sent["Content-Type"] = "application/json"
        with closing(http.client.HTTPConnection(self._web, timeout=30)) as connection:
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def _do(self, method: str, path: str, body: Any = None) -> None:
        status, text = self.call("admin", method, path, body)
        assert status < 300, (method, path, status, text)


def logged_in(service_url: str, role: str, **connect: Any) -> RawClient:
    """A connection that was let in; ``connect`` are more fields of CONNECT."""
    client = RawClient(service_url, greet=False)
    answer = client.ask(
        commands.encode(
            pb.CommandConnect(
                client_version="raw",
                protocol_version=21,
                auth_method_name="token",
                **{"auth_data": token(role).encode(), **connect},
            )
        )
    )
    assert isinstance(answer, pb.CommandConnected), answer
    return client


def differing(player: Player, *, of_real: bool) -> Iterator[str]:
    """A line for every role that gets another answer than its row says."""
    for play, rows in ((player.binary, BINARY), (player.rest, REST)):
        for row in rows:
            for role in ROLES:
                answer, expected = play(row, role), row.expected(role, of_real=of_real)
                if answer != expected:
                    yield f"{row.call} by {role}: {answer}, not {expected}"


def _refusal(answer: Any) -> str:
    if isinstance(answer, pb.CommandGetSchemaResponse | pb.CommandGetOrCreateSchemaResponse):
        return f"{answer.error_code} {answer.error_message}" if answer.HasField("error_code") else ""
    names = {field.name for field in type(answer).DESCRIPTOR.fields}
    return f"{answer.error} {answer.message}" if "error" in names and answer.HasField("error") else ""


def _namespace(topic: str) -> str:
    return topic.removeprefix("persistent://").rpartition("/")[0]


_FRAMES: Final[Mapping[str, Callable[[str], bytes]]] = {
    "metadata": lambda topic: commands.partitioned_metadata(1, topic, create=False),
    "metadata-create": lambda topic: commands.partitioned_metadata(1, topic),
    "lookup": lambda topic: commands.lookup(1, topic),
    "produce": lambda topic: commands.producer(1, 1, topic),
    "produce-with-subscription": lambda topic: commands.encode(
        pb.CommandProducer(topic=topic, producer_id=1, request_id=1, initial_subscription_name="s")
    ),
    "subscribe": lambda topic: commands.subscribe(1, 1, topic, "s"),
    "subscribe-owned": lambda topic: commands.subscribe(1, 1, topic, "owned"),
    "topics": lambda topic: commands.get_topics_of_namespace(1, _namespace(topic)),
    "schema": lambda topic: commands.get_schema(1, topic),
    "register-schema": lambda topic: commands.encode(
        pb.CommandGetOrCreateSchema(
            request_id=1, topic=topic, schema=pb.Schema(name="s", schema_data=b"", type=pb.Schema.String)
        )
    ),
}
