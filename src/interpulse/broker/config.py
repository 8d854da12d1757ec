"""The broker's settings: what they are, and how they are read from a file, the environment and the command line.

A setting is a field of `BrokerConfig`; its key is the camelCase form of the field name, Pulsar's own key wherever
Pulsar has one. Sources, weakest first: the defaults, a ``broker.conf`` file, the environment, explicit settings. They
are read once, checked once, and passed down as values.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Final

from interpulse.broker.config_keys import PLANNED_KEYS, PULSAR_KEYS
from interpulse.model.policies import (
    DELETE_WHEN_CAUGHT_UP,
    DELETE_WHEN_NO_SUBSCRIPTIONS,
    NON_PARTITIONED,
    PARTITIONED,
    AutoTopicCreation,
    InactiveTopicPolicies,
    RetentionPolicies,
)

__all__ = ["BrokerConfig", "ConfigError", "LoadedConfig", "dynamic_keys", "load_config", "settings_by_key"]

_ENVIRONMENT_PREFIX: Final = "PULSAR_PREFIX_"
_PARTITIONS_MAX: Final = 10_000
_PORT_MAX: Final = 65_535
_INT_MAX: Final = 2**31 - 1
_STRATEGIES: Final = (
    "ALWAYS_INCOMPATIBLE",
    "ALWAYS_COMPATIBLE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
)


class ConfigError(Exception):
    """The settings cannot be used; ``problems`` has one sentence for each thing that is wrong."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)


def _setting(
    default: Any,
    text: str,
    *,
    dynamic: bool = False,
    least: int | None = None,
    most: int | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """A field with its one-line description, its bounds, and whether it may change while the broker runs."""
    return field(
        default=default,
        metadata={"text": text, "dynamic": dynamic, "least": least, "most": most, "choices": choices},
    )


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Every setting the broker acts on."""

    # --- identity and addresses
    cluster_name: str = _setting("standalone", "Name of this cluster.")
    data_dir: str = _setting("./data", "Directory that holds everything durable; one process at a time may use it.")
    bind_address: str = _setting("127.0.0.1", "Address both ports listen on.")
    advertised_address: str = _setting("", "Host name clients are told to connect to; empty = the bind address.")
    broker_service_port: int = _setting(6650, "Port of the binary protocol; 0 = a free one.", least=0, most=_PORT_MAX)
    web_service_port: int = _setting(8080, "Port of REST and metrics; 0 = a free one.", least=0, most=_PORT_MAX)

    # --- creation of topics and subscriptions
    allow_auto_topic_creation: bool = _setting(True, "Asking for a missing topic may create it.", dynamic=True)
    allow_auto_topic_creation_type: str = _setting(
        NON_PARTITIONED,
        "Shape of topics that are created by asking for them.",
        dynamic=True,
        choices=(NON_PARTITIONED, PARTITIONED),
    )
    default_num_partitions: int = _setting(
        1, "Partitions of topics that are created partitioned by asking for them.", dynamic=True, least=1
    )
    max_num_partitions_per_partitioned_topic: int = _setting(
        0, "Most partitions a topic may have; 0 = 10,000.", dynamic=True, least=0
    )
    max_topics_per_namespace: int = _setting(
        0, "Most topics a namespace may have; 0 = no limit.", dynamic=True, least=0
    )
    allow_auto_subscription_creation: bool = _setting(True, "SUBSCRIBE may create its subscription.", dynamic=True)
    force_delete_namespace_allowed: bool = _setting(
        False, "Namespaces may be deleted together with their topics.", dynamic=True
    )
    force_delete_tenant_allowed: bool = _setting(
        False, "Tenants may be deleted together with their namespaces.", dynamic=True
    )
    system_topic_enabled: bool = _setting(True, "System topics may be created whatever the policies say.")
    enable_persistent_topics: bool = _setting(True, "Persistent topics can be opened.")
    enable_non_persistent_topics: bool = _setting(True, "Non-persistent topics can be opened.")

    # --- topics that nobody needs any more
    broker_delete_inactive_topics_enabled: bool = _setting(
        True, "Topics that nobody has needed for some time are deleted.", dynamic=True
    )
    broker_delete_inactive_topics_frequency_seconds: int = _setting(
        60, "How often topics are looked at for that, in seconds.", dynamic=True, least=1
    )
    broker_delete_inactive_topics_mode: str = _setting(
        DELETE_WHEN_NO_SUBSCRIPTIONS,
        "What keeps a topic nobody is connected to: any subscription, or only one that has messages to come.",
        dynamic=True,
        choices=(DELETE_WHEN_NO_SUBSCRIPTIONS, DELETE_WHEN_CAUGHT_UP),
    )
    broker_delete_inactive_topics_max_inactive_duration_seconds: int | None = _setting(
        None,
        "How long a topic stays when nobody needs it, in seconds; empty = brokerDeleteInactiveTopicsFrequencySeconds.",
        dynamic=True,
        least=0,
    )
    broker_delete_inactive_partitioned_topic_metadata_enabled: bool = _setting(
        False, "A partitioned topic goes with its last partition.", dynamic=True
    )

    # --- schemas
    is_allow_auto_update_schema_enabled: bool = _setting(True, "Clients may register new schemas.", dynamic=True)
    schema_compatibility_strategy: str = _setting(
        "FULL", "How a new schema has to fit the earlier ones.", choices=_STRATEGIES
    )
    system_topic_schema_compatibility_strategy: str = _setting(
        "ALWAYS_COMPATIBLE", "The same for system topics.", choices=_STRATEGIES
    )
    is_schema_validation_enforced: bool = _setting(False, "Producers without schema are refused on typed topics.")

    # --- metrics
    expose_topic_level_metrics_in_prometheus: bool = _setting(
        True, "Metrics show topics and subscriptions one by one, as long as there are not too many; false: namespaces."
    )

    # --- limits of connections
    keep_alive_interval_seconds: int = _setting(30, "Silent connections are pinged after this many seconds.", least=1)
    connection_liveness_check_timeout_millis: int = _setting(
        5000, "How long a silent client may keep a producer name from another one, in milliseconds.", least=0
    )
    max_concurrent_lookup_request: int = _setting(
        50_000, "Lookups and metadata queries under way at once.", dynamic=True, least=1
    )
    supports_batch_lookup: bool = _setting(
        True, "Clients may ask for the brokers of many topics in one request (PIP-35).", dynamic=True
    )
    max_topics_per_batch_lookup: int = _setting(
        1000, "Most topics in one request of that kind, their partitions included.", dynamic=True, least=1, most=10_000
    )
    supports_replication_preview: bool = _setting(
        True, "Enabling replication of a namespace can be previewed, and remote clusters adjusted to it (PIP-433)."
    )
    max_message_size: int = _setting(5 * 1024 * 1024, "Largest message, in bytes.", least=1024)
    max_pending_publish_requests_per_connection: int = _setting(
        1000, "Entries a connection may have unanswered before it is no longer read from.", least=1
    )

    # --- storage of messages
    broker_deduplication_enabled: bool = _setting(False, "Repeated sequence ids of a producer are dropped.")
    broker_deduplication_entries_interval: int = _setting(
        1000, "After how many entries the state of de-duplication is stored.", least=1
    )
    default_retention_time_in_minutes: int = _setting(
        0, "How long acknowledged messages stay, in minutes; -1 = for ever.", least=-1
    )
    default_retention_size_in_mb: int = _setting(
        0, "How much of the acknowledged messages of a topic stays, in MiB; -1 = everything.", least=-1
    )
    ttl_duration_default_in_seconds: int = _setting(
        0, "When unacknowledged messages expire, in seconds; 0 = never.", least=0
    )
    retention_check_interval_in_seconds: int = _setting(
        120, "How often expired messages, and ledgers nobody needs, are removed, in seconds.", least=1
    )
    managed_ledger_max_entries_per_ledger: int = _setting(
        50_000, "Entries in a ledger until a new one begins.", least=1
    )
    managed_ledger_max_size_per_ledger_mbytes: int = _setting(
        2048, "Size of a ledger until a new one begins, in MiB.", least=1
    )
    managed_ledger_min_ledger_rollover_time_minutes: int = _setting(
        10, "A full ledger is kept at least this long, in minutes.", least=0
    )
    managed_ledger_max_ledger_rollover_time_minutes: int = _setting(
        240, "A ledger is kept at most this long, in minutes.", least=1
    )
    managed_ledger_cache_size_mb: int = _setting(64, "Memory for the newest entries of all topics, in MiB.", least=1)

    # --- replication
    replicator_prefix: str = _setting("pulsar.repl", "Producer names that begin so belong to replicators.")
    create_topic_to_remote_cluster_for_replication: bool = _setting(
        True, "Replication creates topics that the remote cluster lacks."
    )
    auto_topic_creation_lookup_timeout_ms: int = _setting(
        5000, "How long other clusters may take to say what a topic is there, before it is created here.", least=1
    )
    replication_job: str = _setting(
        "embedded",
        "Who runs the replication job: the broker as a child process, or somebody else.",
        choices=("embedded", "external"),
    )
    replication_job_spark_master: str = _setting("local[2]", "Spark master of the replication job.")
    replication_job_driver_memory: str = _setting("1g", "Memory of the Spark driver of the replication job.")

    @property
    def auto_topic_creation(self) -> AutoTopicCreation:
        """The broker's policy for namespaces that have none of their own."""
        return AutoTopicCreation(
            self.allow_auto_topic_creation, self.allow_auto_topic_creation_type, self.default_num_partitions
        )

    @property
    def partitions_max(self) -> int:
        """Most partitions of one topic. Unless somebody wants more, a mistyped count must not keep the broker busy."""
        return self.max_num_partitions_per_partitioned_topic or _PARTITIONS_MAX

    @property
    def inactive_topics(self) -> InactiveTopicPolicies:
        """The broker's word on inactive topics for namespaces that have none of their own."""
        seconds = self.broker_delete_inactive_topics_max_inactive_duration_seconds
        return InactiveTopicPolicies(
            self.broker_delete_inactive_topics_mode,
            self.broker_delete_inactive_topics_frequency_seconds if seconds is None else seconds,
            self.broker_delete_inactive_topics_enabled,
        )

    @property
    def retention(self) -> RetentionPolicies:
        """The broker's retention for namespaces that have none of their own."""
        return RetentionPolicies(self.default_retention_time_in_minutes, self.default_retention_size_in_mb)

    @property
    def advertised_host(self) -> str:
        """Where clients reach this broker."""
        return self.advertised_address or self.bind_address

    def as_text(self) -> dict[str, str]:
        """All settings by key, every value as it would stand in ``broker.conf``."""
        return {key: _as_text(getattr(self, item.name)) for key, item in settings_by_key().items()}

    def changed(self, values: Mapping[str, str]) -> BrokerConfig:
        """A copy with some settings, given by key and as text, replaced. Raises ConfigError with all problems."""
        problems: list[str] = []
        parsed = dict(_parsed(values.items(), "", problems))
        if problems:
            raise ConfigError(*problems)
        return replace(self, **parsed)


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """Usable settings, and one sentence for each that Pulsar knows but this broker does not act on."""

    config: BrokerConfig
    warnings: tuple[str, ...] = ()


def load_config(
    *,
    file_text: str = "",
    file_name: str = "broker.conf",
    environment: Mapping[str, str] | None = None,
    settings: Iterable[str] = (),
    options: Mapping[str, str] | None = None,
) -> LoadedConfig:
    """Join all sources; raises ConfigError with every problem found in any of them.

    ``environment``: variables named like a key, or ``PULSAR_PREFIX_<key>``; all others are none of our business.
    ``settings``: ``key=value`` texts as given to ``--set``. ``options``: values that command line options stand for, by
    key; they are the strongest.
    """
    problems: list[str] = []
    warnings: list[str] = []
    sources = (
        (f"{file_name}: ", _file_settings(file_text, file_name, problems)),
        ("environment: ", _environment_settings(environment or {})),
        ("", _explicit_settings(settings, problems)),
        ("", list((options or {}).items())),
    )
    values: dict[str, Any] = {}
    for origin, given in sources:
        supported = list(_supported(given, origin, problems, warnings))
        values.update(_parsed(supported, origin, problems))
    if problems:
        raise ConfigError(*problems)
    return LoadedConfig(BrokerConfig(**values), tuple(dict.fromkeys(warnings)))


def settings_by_key() -> dict[str, Field[Any]]:
    """Every supported key and the field it sets."""
    return dict(_FIELDS)


def dynamic_keys() -> list[str]:
    """The keys that may be changed while the broker runs, sorted."""
    return sorted(key for key, item in _FIELDS.items() if item.metadata["dynamic"])


def _key(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join("MB" if part == "mb" else part.capitalize() for part in rest)


_FIELDS: Final = {_key(item.name): item for item in fields(BrokerConfig)}


def _file_settings(text: str, file_name: str, problems: list[str]) -> list[tuple[str, str]]:
    settings = []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", "!")):
            continue
        key, separator, value = stripped.partition("=")
        if not separator:
            problems.append(f"{file_name}, line {number}: expected key=value, found {stripped!r}")
            continue
        settings.append((key.strip(), value.strip()))
    return settings


def _environment_settings(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    named = [(name, value) for name, value in environment.items() if name in _FIELDS or name in PULSAR_KEYS]
    prefixed = [
        (name.removeprefix(_ENVIRONMENT_PREFIX), value)
        for name, value in environment.items()
        if name.startswith(_ENVIRONMENT_PREFIX)
    ]
    return named + prefixed


def _explicit_settings(settings: Iterable[str], problems: list[str]) -> list[tuple[str, str]]:
    parsed = []
    for text in settings:
        key, separator, value = text.partition("=")
        if separator:
            parsed.append((key.strip(), value.strip()))
        else:
            problems.append(f"expected key=value, found {text!r}")
    return parsed


def _supported(
    given: Iterable[tuple[str, str]], origin: str, problems: list[str], warnings: list[str]
) -> Iterator[tuple[str, str]]:
    """The settings of one source that we act on. A value left empty means the default, as in Pulsar's own files."""
    for key, value in given:
        if key in _FIELDS:
            if value:
                yield key, value
        elif key in PULSAR_KEYS:
            if value:
                warnings.append(f"{origin}{key} is a setting of Pulsar that is not supported here; it has no effect")
        elif key in PLANNED_KEYS:
            warnings.append(f"{origin}{key} belongs to a part that is not built yet; it has no effect")
        else:
            problems.append(f"{origin}{key} is not a known setting{_nearest(key)}")


def _nearest(key: str) -> str:
    near = difflib.get_close_matches(key, [*_FIELDS, *PULSAR_KEYS], n=1, cutoff=0.0)
    return f"; the nearest is {near[0]}" if near else ""


def _parsed(given: Iterable[tuple[str, str]], origin: str, problems: list[str]) -> Iterator[tuple[str, Any]]:
    for key, text in given:
        try:
            yield _FIELDS[key].name, _value(_FIELDS[key], text)
        except ValueError as error:
            problems.append(f"{origin}{key}={text}: {error}")


def _value(item: Field[Any], text: str) -> Any:
    """Read one value by the type of its default; raises ValueError that says what is allowed."""
    if isinstance(item.default, bool):
        return _boolean(text)
    if isinstance(item.default, int | None):
        return _integer(text, item.metadata["least"], item.metadata["most"])
    choices = item.metadata["choices"]
    if choices and text not in choices:
        raise ValueError(f"must be one of {', '.join(choices)}")
    return text


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _integer(text: str, least: int | None, most: int | None) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", text, re.ASCII):
        raise ValueError("must be a whole number")
    number = int(text)
    if least is not None and number < least:
        raise ValueError(f"must be at least {least}")
    if number > (most or _INT_MAX):
        raise ValueError(f"must be at most {most or _INT_MAX}")
    return number


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
