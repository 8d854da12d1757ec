"""Configuration file of the replication job (TOML): the source, the targets, and the topics and limits of copying.

Unknown tables and keys are refused with the nearest known ones. All problems are reported together.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.client.session import Session
from interpulse.client.transport.http_session import parse_web_urls
from interpulse.model.clusters import shown_address
from interpulse.model.errors import InvalidTopicName
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.connect import misnamed
from interpulse.spark.job.start import Start, parse_start
from interpulse.spark.options.connection_options import Access
from interpulse.spark.options.option_values import parse_duration_ms, parse_pattern, parse_service_url, parse_size
from interpulse.spark.topic_map import TopicMap, parse_topic_map

FORWARD_ORIGIN: Final = "origin"
ON_MISMATCH_EXPAND: Final = "expand"
ON_MISMATCH_FAIL: Final = "fail"
SYNC_ALL: Final = "all"
SYNC_MARKED: Final = "marked"
SYNC_NONE: Final = "none"


class PipelineConfigError(ValueError):
    """A file that cannot be used. The message lists every problem."""


@dataclass(frozen=True, kw_only=True)
class ClusterAddress:
    """One side of the pipeline: its name, its ``pulsar://`` and ``http://`` URLs, and the credentials.

    Prefer ``file:///path`` for ``token``. ``auth_plugin`` is the Java name of another way to authenticate, with
    ``auth_params``. With encrypted URLs, ``trust_certs_file`` and ``tls_allow_insecure_connection`` (which trusts any
    certificate) apply; ``certificate_file`` and ``key_file`` are presented, and identify the job if nothing else does.
    ``listener_name`` selects an advertised listener of the brokers.
    """

    cluster: str
    service_url: str
    admin_url: str
    token: str | None = field(default=None, repr=False)
    auth_plugin: str | None = None
    auth_params: str | None = field(default=None, repr=False)
    trust_certs_file: str | None = None
    tls_allow_insecure_connection: bool = False
    certificate_file: str | None = None
    key_file: str | None = None
    listener_name: str | None = None

    @property
    def access(self) -> Access:
        return Access(
            self.token if self.auth_plugin is None else self.auth_params,
            self.trust_certs_file,
            self.tls_allow_insecure_connection,
            self.certificate_file,
            self.key_file,
            self.listener_name,
            plugin=self.auth_plugin,
        )

    @property
    def shown(self) -> str:
        """Name for messages to people."""
        return f"{self.cluster} at {shown_address(self.service_url)}"

    def admin(self) -> AdminClient:
        """Open a client of the admin API. The caller closes it."""
        access = self.access
        return AdminClient(self.admin_url, credentials=access.credentials, tls=access.tls, timeout_ms=10_000)

    def client(self) -> Client:
        """Open a client for messages of the job itself. The caller closes it."""
        access = self.access
        return Client(
            self.service_url,
            operation_timeout_ms=10_000,
            credentials=access.credentials,
            tls=access.tls,
            listener_name=access.listener_name,
        )

    def session(self) -> Session:
        """Open a client of the binary protocol for the control side, inside an event loop. The caller closes it."""
        return self.client().session


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Topics to copy: by the source's replication policies, or the namespaces and topics listed here."""

    from_policies: bool = False
    namespaces: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    exclude: str | None = None
    include_system_topics: bool = False


@dataclass(frozen=True, kw_only=True)
class ProvisionRules:
    """Permitted creations and changes on the target before the first entry is sent.

    ``on_mismatch`` decides about a topic whose partition count differs there.
    """

    create: bool = True
    namespaces: bool = False
    on_mismatch: str = "hold"
    ensure_deduplication: bool = True


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one micro-batch."""

    entries_per_batch: int = 40_000
    bytes_per_batch: int = 64 << 20
    tasks: int = 2
    poll_ms: int = 50
    discovery_ms: int = 1_000
    trigger_ms: int = 0
    run_ahead_ms: int | None = None
    """Time for which a task goes on copying what arrives; with 0 it ends with its ranges.

    None: 60 s where Spark runs on one machine, 5 s on a cluster.
    """


@dataclass(frozen=True, kw_only=True)
class MetricsSettings:
    """Address of the job's metrics for Prometheus. Port 0 turns them off."""

    port: int = 0
    host: str = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class SubscriptionSettings:
    """Subscriptions whose acknowledgements the two clusters exchange: those with ``include`` in the name.

    ``sync`` is "marked" for replicated subscriptions, "all" for all durable ones, or "none".
    """

    sync: str = SYNC_MARKED
    include: str | None = None
    interval_ms: int = 1_000
    rebuild_bytes_per_second: int = 20 << 20


@dataclass(frozen=True, kw_only=True)
class HeartbeatSettings:
    """A small message every ``interval_ms`` to a topic of the source in ``namespace``; None sends none."""

    namespace: str | None = None
    interval_ms: int = 10_000


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """Settings of Spark when the job is not run by spark-submit. ``conf`` has any Spark key."""

    master: str = "local[16]"
    driver_memory: str = "1g"
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PipelineConfig:
    """Content of the whole file."""

    name: str
    state: Path
    source: ClusterAddress
    target: ClusterAddress | None = None
    select: Selection
    map: TopicMap = field(default_factory=TopicMap)
    provision: ProvisionRules = field(default_factory=ProvisionRules)
    limits: Limits = field(default_factory=Limits)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    subscriptions: SubscriptionSettings = field(default_factory=SubscriptionSettings)
    heartbeat: HeartbeatSettings = field(default_factory=HeartbeatSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    start: Start = field(default_factory=Start)
    as_replicator: bool = False
    lane_epoch: int = 0
    copy_schemas: bool = True
    forward: str = "none"

    @property
    def carries_subscriptions(self) -> bool:
        """True if acknowledgements are exchanged. Several topics that are written to one exclude it."""
        return self.subscriptions.sync != SYNC_NONE and not self.map.merge

    @property
    def heartbeat_topic(self) -> TopicName | None:
        """Topic of heartbeats, which is not partitioned."""
        namespace = self.heartbeat.namespace
        return None if namespace is None else TopicName.parse(f"{namespace}/__interpulse_heartbeat-{self.name}")


def load_pipeline_config(path: str) -> PipelineConfig:
    """Read a file. Raise PipelineConfigError that names it."""
    try:
        body = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise PipelineConfigError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PipelineConfigError(f"{path}: not TOML: {error}") from None
    try:
        return parse_pipeline_config(body)
    except PipelineConfigError as error:
        raise PipelineConfigError(f"{path}: {error}") from None


async def check_cluster_name(table: str, address: ClusterAddress, admin: AdminClient) -> None:
    """Compare the cluster's own name with the file. Raise PipelineConfigError if they differ.

    Also raises the error of a cluster that does not answer.
    """
    problem = await misnamed(admin, address.cluster, address.admin_url)
    if problem is not None:
        raise PipelineConfigError(f"[{table}] cluster: {problem}")


_SECTIONS: Final[Mapping[str, type[Any]]] = {
    "source": ClusterAddress,
    "target": ClusterAddress,
    "select": Selection,
    "provision": ProvisionRules,
    "limits": Limits,
    "metrics": MetricsSettings,
    "subscriptions": SubscriptionSettings,
    "heartbeat": HeartbeatSettings,
    "spark": SparkSettings,
}
_TABLES: Final = {"map", *_SECTIONS}
"""Fields of PipelineConfig with a table of their own. The others are keys of ``[pipeline]``."""


def parse_pipeline_config(body: Mapping[str, Any]) -> PipelineConfig:
    """Check the parsed file. Raise PipelineConfigError that lists every problem."""
    problems: list[str] = []
    _refuse_unknown(body, {"pipeline", *_TABLES}, "table", problems)
    pipeline = _table(body, "pipeline", problems)
    own = {item.name: str(item.type) for item in fields(PipelineConfig) if item.name not in _TABLES}
    values = _values(own, pipeline, "pipeline", problems)
    _check_pipeline(pipeline, problems)
    sections: dict[str, Any] = {}
    for name, cls in _SECTIONS.items():
        if name in body:
            sections[name] = _section(cls, _table(body, name, problems), name, problems)
        elif name in ("source", "select"):
            problems.append(f"table [{name}] is required")
    source, target, select, subscriptions = map(sections.get, ("source", "target", "select", "subscriptions"))
    topic_map = _topic_map(_table(body, "map", problems), select, problems)
    if subscriptions is not None and subscriptions.sync != SYNC_NONE and topic_map.merge:
        problems.append(
            '[map] merge = true needs [subscriptions] sync = "none": a subscription there is of several topics'
        )
    if select is not None and not select.from_policies:
        _check_listing(select, problems, has_target="target" in body)
    _check_loop(source, target, problems)
    for name, address in (("source", source), ("target", target)):
        if address is not None:
            _check_certificate(name, address, problems)
            _check_credentials(name, address, problems)
    if problems:
        raise PipelineConfigError("; ".join(problems))
    return PipelineConfig(map=topic_map, **sections, **(values | {"state": Path(values["state"])}))


def _check_pipeline(pipeline: Mapping[str, Any], problems: list[str]) -> None:
    name = pipeline.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        problems.append(
            "[pipeline] name is required: letters, digits and _.- ; it is part of producer and cursor names"
        )
    if not pipeline.get("state"):
        problems.append("[pipeline] state is required: the directory of checkpoint and lane files")


def _table(body: Mapping[str, Any], name: str, problems: list[str]) -> Mapping[str, Any]:
    table = body.get(name, {})
    if not isinstance(table, Mapping):
        problems.append(f"{name} must be a table: [{name}]")
        return {}
    return table


def _section(cls: type[Any], table: Mapping[str, Any], name: str, problems: list[str]) -> Any:
    values = _values({item.name: str(item.type) for item in fields(cls)}, table, name, problems)
    needed = [item.name for item in fields(cls) if item.default is MISSING and item.default_factory is MISSING]
    if absent := [key for key in needed if key not in table]:
        problems.append(f"[{name}] needs {', '.join(absent)}")
    return cls(**values) if set(needed) <= set(values) else None


def _values(kinds: Mapping[str, str], table: Mapping[str, Any], name: str, problems: list[str]) -> dict[str, Any]:
    """Return the valid values of a table. ``kinds`` are the annotations of their fields."""
    _refuse_unknown(table, kinds, f"key of [{name}]", problems)
    values: dict[str, Any] = {}
    for key in filter(kinds.__contains__, table):
        try:
            values[key] = _value(kinds[key], key, _in_present_form(key, table[key]))
        except (ValueError, InvalidTopicName) as error:
            problems.append(f"[{name}] {key}: {error}")
    return values


def _in_present_form(key: str, value: Any) -> Any:
    """Return the present form of a value of an earlier version."""
    if key == "sync" and isinstance(value, bool):
        return SYNC_ALL if value else SYNC_NONE
    return value


def _one_of(words: Collection[str], word: str) -> None:
    if word not in words:
        raise ValueError(f"{word!r} is not one of {', '.join(words)}")


_CHECKS: Final[Mapping[str, Callable[[str], object]]] = {
    "admin_url": parse_web_urls,
    "exclude": parse_pattern,
    "forward": partial(_one_of, ("none", FORWARD_ORIGIN)),
    "include": parse_pattern,
    "namespace": NamespaceName.parse,
    "on_mismatch": partial(_one_of, ("hold", ON_MISMATCH_FAIL, ON_MISMATCH_EXPAND)),
    "service_url": parse_service_url,
    "sync": partial(_one_of, (SYNC_MARKED, SYNC_ALL, SYNC_NONE)),
}
"""Checks of strings that are used as written; they refuse unusable ones."""


def _value(kind: str, key: str, value: Any) -> Any:
    """Check one value against the annotation of its field."""
    if kind == "Start":
        return parse_start(value)
    if kind in ("int", "int | None"):
        return _number(key, value)
    if kind == "bool":
        if not isinstance(value, bool):
            raise ValueError(f"{value!r} is neither true nor false")
        return value
    if kind.startswith("tuple"):
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError("must be a list of strings")
        return _names(key, value)
    if kind.startswith("Mapping"):
        if not isinstance(value, Mapping):
            raise ValueError("must be a table")
        return {name: str(item) for name, item in value.items()}
    if not isinstance(value, str) or not value:
        raise ValueError("must be a string")
    _CHECKS.get(key, str)(value)
    return value


_MAY_BE_ZERO: Final = ("lane_epoch", "port", "run_ahead_ms", "trigger_ms")


def _number(key: str, value: Any) -> int:
    if isinstance(value, str):
        value = parse_duration_ms(value) if key.endswith("_ms") else parse_size(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < (0 if key in _MAY_BE_ZERO else 1):
        raise ValueError(f"{value!r} is not a positive number")
    return value


def _names(key: str, values: list[str]) -> tuple[str, ...]:
    if key == "namespaces":
        return tuple(str(NamespaceName.parse(item)) for item in values)
    if key == "topics":
        return tuple(str(TopicName.parse(item).base) for item in values)
    return tuple(values)


def _refuse_unknown(table: Mapping[str, Any], names: Collection[str], what: str, problems: list[str]) -> None:
    for key in table:
        if key not in names:
            close = difflib.get_close_matches(key, sorted(names), n=2)
            hint = f"; did you mean {' or '.join(close)}?" if close else f"; there are {', '.join(sorted(names))}"
            problems.append(f"unknown {what} {key!r}{hint}")


def _topic_map(table: Mapping[str, Any], select: Selection | None, problems: list[str]) -> TopicMap:
    _refuse_unknown(table, {"rules", "merge"}, "key of [map]", problems)
    try:
        topic_map = parse_topic_map(table)
    except ValueError as error:
        problems.append(f"[map] {error}")
        return TopicMap()
    if topic_map and select is not None and select.from_policies:
        problems.append("[map] is not for from_policies = true: policies replicate a topic under its own name")
    return topic_map


def _check_listing(select: Selection, problems: list[str], *, has_target: bool) -> None:
    if not (select.namespaces or select.topics):
        problems.append("[select] needs from_policies = true, or namespaces, or topics")
    if not has_target:
        problems.append("[target] is required unless [select] from_policies = true")


def _check_loop(source: ClusterAddress | None, target: ClusterAddress | None, problems: list[str]) -> None:
    """Refuse a pipeline into its own source, which would never end."""
    if source is None or target is None:
        return
    if source.cluster == target.cluster:
        problems.append(f"source and target are the same cluster {source.cluster}")
    if _hosts(source.service_url) & _hosts(target.service_url):
        problems.append(f"source and target share the broker address {shown_address(source.service_url)}")


def _check_certificate(name: str, address: ClusterAddress, problems: list[str]) -> None:
    if not (address.certificate_file or address.key_file):
        return
    if not (address.certificate_file and address.key_file):
        problems.append(f"[{name}] certificate_file and key_file belong together: name both")
    if not (address.service_url.startswith("pulsar+ssl:") and address.admin_url.startswith("https:")):
        problems.append(f"[{name}] certificate_file needs encrypted addresses: pulsar+ssl:// and https://")


def _check_credentials(name: str, address: ClusterAddress, problems: list[str]) -> None:
    if address.auth_plugin is None and address.auth_params is None:
        return
    if address.token is not None:
        problems.append(f"[{name}] token excludes auth_plugin and auth_params: give one of them")
    elif address.auth_plugin is None:
        problems.append(f"[{name}] auth_params needs auth_plugin, which says how they are meant")
    else:
        try:
            credentials = address.access.credentials
            address.access.tls.showing(credentials, address.service_url).showing(credentials, address.admin_url)
        except ValueError as error:
            problems.append(f"[{name}] auth_params: {error}")


def _hosts(service_url: str) -> set[str]:
    return set(service_url.partition("://")[2].rstrip("/").split(","))
