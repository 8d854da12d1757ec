"""The options of ``format("pulsar")``: names, aliases, values, defaults.

Spark lower-cases keys, so they are looked up without case. A key that is not known is refused with the nearest known
ones: a misspelt option that is silently ignored is the worst kind of default. All problems are reported together.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Flag, auto
from typing import Any, TypeVar

from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.model.names import TopicName
from interpulse.spark.access import Access
from interpulse.spark.offsets import parse_offsets

__all__ = [
    "SUBSCRIPTION",
    "OptionError",
    "Purpose",
    "ReadOptions",
    "WriteOptions",
    "documented_options",
    "parse_duration_ms",
    "parse_read_options",
    "parse_size",
    "parse_write_options",
]

_RESERVED = frozenset({"path", "checkpointlocation", "queryname"})


class OptionError(ValueError):
    """One or several options cannot be used; the message lists every problem."""


class Purpose(Flag):
    """What a query does with the source."""

    BATCH_READ = auto()
    STREAM_READ = auto()
    BATCH_WRITE = auto()
    STREAM_WRITE = auto()
    READ = BATCH_READ | STREAM_READ
    WRITE = BATCH_WRITE | STREAM_WRITE
    ANY = READ | WRITE


def parse_duration_ms(text: str) -> int:
    """Read ``500`` or ``500ms``, ``30s``, ``15m``, ``1h``: milliseconds."""
    match = re.fullmatch(r"\s*(-?[0-9]+)\s*(ms|s|m|h)?\s*", text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration such as 500, 500ms, 30s, 15m")
    return int(match[1]) * {"ms": 1, None: 1, "s": 1000, "m": 60_000, "h": 3_600_000}[match[2]]


def parse_size(text: str) -> int:
    """Read ``65536``, ``64k``, ``64m``, ``1g``: bytes."""
    match = re.fullmatch(r"\s*([0-9]+)\s*([kmg]?)b?\s*", text.lower())
    if match is None:
        raise ValueError(f"{text!r} is not a size such as 65536, 64k, 64m, 1g")
    return int(match[1]) * {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}[match[2]]


def _flag(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.strip().lower() == "true"


def _word(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.strip().lower() not in allowed:
            raise ValueError(f"{text!r} is not one of {', '.join(allowed)}")
        return text.strip().lower()

    return read


def _positive(text: str) -> int:
    if not text.strip().isdigit() or int(text) == 0:
        raise ValueError(f"{text!r} is not a positive whole number")
    return int(text)


def _whole(text: str) -> int:
    if not text.strip().isdigit():
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def _positive_size(text: str) -> int:
    size = parse_size(text)
    if size == 0:
        raise ValueError("must be above 0")
    return size


def _positive_duration(text: str) -> int:
    duration = parse_duration_ms(text)
    if duration <= 0:
        raise ValueError("must be above 0")
    return duration


def _service_url(text: str) -> str:
    if not re.match(r"pulsar(\+ssl)?://[^/\s]+$", text.strip()):
        raise ValueError(f"{text!r} does not look like pulsar://host:6650")
    return text.strip()


def _web_url(text: str) -> str:
    if not re.match(r"https?://[^/\s]+/?$", text.strip()):
        raise ValueError(f"{text!r} does not look like http://host:8080")
    return text.strip().rstrip("/")


def _topic(text: str) -> str:
    return str(TopicName.parse(text.strip()))


def _topics(text: str) -> tuple[str, ...]:
    names = tuple(str(TopicName.parse(name.strip())) for name in text.split(",") if name.strip())
    if not names:
        raise ValueError("names no topic")
    return names


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    return text


def _columns(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


SUBSCRIPTION = "subscription"
"""``startingOffsets=subscription``: after what the durable subscription has acknowledged."""


def _starting(text: str) -> str | Position | dict[str, Position]:
    return SUBSCRIPTION if text.strip().lower() == SUBSCRIPTION else parse_offsets(text, inclusive_start=True)


def _ending(text: str) -> Position | dict[str, Position]:
    return parse_offsets(text, inclusive_start=False)


def _option(
    name: str,
    read: Callable[[str], Any],
    default: Any = MISSING,
    *,
    aliases: tuple[str, ...] = (),
    purpose: Purpose = Purpose.ANY,
    secret: bool = False,
    text: str,
) -> Any:
    metadata = {"option": name, "read": read, "aliases": aliases, "purpose": purpose, "text": text}
    return (
        field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata, repr=not secret)
    )


_SERVICE_URL_TEXT = "binary service URL, for example `pulsar://127.0.0.1:6650`; required"
_TIMEOUT_TEXT = "longest wait for the answer to one request"
_TOKEN_TEXT = (
    "token to authenticate with: best `file:///path`, which is read where it is used and anew for every connection; or "
    "`env:NAME`, or the token itself"
)
_TRUST_TEXT = "file of the certificates that are trusted with `pulsar+ssl://`; without it the system's"
_INSECURE_TEXT = "trust any certificate with `pulsar+ssl://`, also one for another host"


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What a batch or stream read was asked to do."""

    service_url: str = _option(
        "service.url", _service_url, aliases=("serviceUrl", "pulsar.client.serviceUrl"), text=_SERVICE_URL_TEXT
    )
    operation_timeout_ms: int = _option(
        "operationTimeoutMs",
        _positive_duration,
        30_000,
        aliases=("pulsar.client.operationTimeoutMs",),
        text=_TIMEOUT_TEXT,
    )
    auth_token: str | None = _option(
        "authToken", str, None, aliases=("pulsar.client.authParams",), secret=True, text=_TOKEN_TEXT
    )
    trust_certs_file: str | None = _option(
        "tlsTrustCertsFile", str, None, aliases=("pulsar.client.tlsTrustCertsFilePath",), text=_TRUST_TEXT
    )
    insecure_allowed: bool = _option(
        "tlsAllowInsecureConnection",
        _flag,
        False,
        aliases=("pulsar.client.tlsAllowInsecureConnection",),
        text=_INSECURE_TEXT,
    )
    topics: tuple[str, ...] = _option(
        "topics",
        _topics,
        (),
        aliases=("topic", "subscribe"),
        purpose=Purpose.READ,
        text="topic or comma list of topics; short names expand to `persistent://public/default/`; a partition name "
        "reads that partition only",
    )
    topics_pattern: str | None = _option(
        "topicsPattern",
        _pattern,
        None,
        aliases=("subscribePattern",),
        purpose=Purpose.READ,
        text="regular expression for the whole `tenant/namespace/topic` of base names; tenant and namespace literal",
    )
    topics_file: str | None = _option(
        "topicsFile",
        str,
        None,
        purpose=Purpose.STREAM_READ,
        text="JSON file on the driver that lists topic-partitions, read again when it changes; written by the "
        "replication job",
    )
    topics_exclude: str | None = _option(
        "topicsExclude", _pattern, None, purpose=Purpose.READ, text="regular expression, applied after inclusion"
    )
    include_system_topics: bool = _option(
        "includeSystemTopics", _flag, False, purpose=Purpose.READ, text="whether a pattern may match system topics"
    )
    starting_offsets: str | Position | dict[str, Position] | None = _option(  # noqa: RUF009 - a dataclass field
        "startingOffsets",
        _starting,
        None,
        purpose=Purpose.READ,
        text="`earliest`, `latest` (streams), `subscription` (with `predefinedSubscription`), or JSON: topic or "
        'partition to `"earliest"`, `"latest"`, `-2`, `-1`, `"ledger:entry"` or `{"partition": value}`; inclusive. '
        "Default: batch `earliest`, stream `latest`",
    )
    ending_offsets: Position | dict[str, Position] = _option(  # noqa: RUF009 - a dataclass field
        "endingOffsets", _ending, LATEST, purpose=Purpose.BATCH_READ, text="like `startingOffsets`, inclusive"
    )
    mode: str = _option(
        "mode",
        _word("message", "entry"),
        "message",
        text="`message`: one row per message; `entry`: one row per broker entry, opaque",
    )
    value_schema: str = _option(
        "valueSchema", _word("raw"), "raw", text="`raw`: `value` holds the payload bytes (the only one yet)"
    )
    include_columns: tuple[str, ...] = _option(
        "includeColumns",
        _columns,
        ("default",),
        aliases=("includeMetadata",),
        purpose=Purpose.READ,
        text="comma list of columns, or `default`, `all`, `none`",
    )
    fail_on_data_loss: bool = _option(
        "failOnDataLoss",
        _flag,
        True,
        purpose=Purpose.READ,
        text="fail when entries that were still to be read are gone; `false`: warn and go on",
    )
    predefined_subscription: str | None = _option(
        "predefinedSubscription",
        str,
        None,
        purpose=Purpose.STREAM_READ,
        text="durable subscription to create on every partition and to advance behind the stream",
    )
    subscription_prefix: str = _option(
        "subscriptionPrefix", str, "spark-interpulse", purpose=Purpose.READ, text="names of the non-durable readers"
    )
    max_entries_per_trigger: int | None = _option(
        "maxEntriesPerTrigger",
        _positive,
        None,
        aliases=("maxOffsetsPerTrigger",),
        purpose=Purpose.STREAM_READ,
        text="most entries of one micro-batch (an entry holds one or more messages)",
    )
    max_bytes_per_trigger: int | None = _option(
        "maxBytesPerTrigger",
        _positive_size,
        None,
        purpose=Purpose.STREAM_READ,
        text="soft limit of one micro-batch, by the average entry size seen",
    )
    max_partitions: int = _option(
        "maxPartitions", _positive, 16, purpose=Purpose.READ, text="most tasks per batch; ranges are packed into them"
    )
    plan_mode: str = _option(
        "planMode",
        _word("balanced", "stable"),
        "balanced",
        purpose=Purpose.READ,
        text="`balanced` by bytes, or `stable` by hash of the partition name",
    )
    offset_poll_interval_ms: int = _option(
        "offsetPollIntervalMs",
        _positive_duration,
        200,
        purpose=Purpose.STREAM_READ,
        text="how often brokers are asked for last positions, at most",
    )
    discovery_interval_ms: int = _option(
        "partitionDiscoveryIntervalMs",
        parse_duration_ms,
        30_000,
        purpose=Purpose.STREAM_READ,
        text="how often to look for new partitions and topics; 0 or less: never",
    )
    poll_timeout_ms: int = _option(
        "pollTimeoutMs",
        _positive_duration,
        120_000,
        purpose=Purpose.READ,
        text="longest silence inside a range that must still deliver",
    )
    fetch_buffer_bytes: int = _option(
        "fetchBufferBytes", _positive_size, 32 << 20, purpose=Purpose.READ, text="bytes in flight per task, all ranges"
    )
    range_concurrency: int = _option(
        "rangeConcurrency", _positive, 16, purpose=Purpose.READ, text="ranges fetched at the same time in one task"
    )
    arrow_batch_bytes: int = _option(
        "arrowBatchBytes", _positive_size, 2 << 20, purpose=Purpose.READ, text="size of emitted Arrow batches"
    )
    arrow_batch_rows: int = _option(
        "arrowBatchRows", _positive, 8192, purpose=Purpose.READ, text="rows of emitted Arrow batches"
    )
    verify_checksum: bool = _option(
        "verifyChecksum", _flag, True, purpose=Purpose.READ, text="check the CRC32C of every entry"
    )

    @property
    def access(self) -> Access:
        return Access(self.auth_token, self.trust_certs_file, self.insecure_allowed)


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """What a batch or stream write was asked to do."""

    service_url: str = _option(
        "service.url", _service_url, aliases=("serviceUrl", "pulsar.client.serviceUrl"), text=_SERVICE_URL_TEXT
    )
    admin_url: str | None = _option(
        "admin.url",
        _web_url,
        None,
        aliases=("adminUrl", "pulsar.admin.serviceUrl"),
        purpose=Purpose.WRITE,
        text="REST URL; needed for `createTopics` and for the de-duplication check of exactly-once",
    )
    operation_timeout_ms: int = _option(
        "operationTimeoutMs",
        _positive_duration,
        30_000,
        aliases=("pulsar.client.operationTimeoutMs",),
        text=_TIMEOUT_TEXT,
    )
    auth_token: str | None = _option(
        "authToken", str, None, aliases=("pulsar.client.authParams",), secret=True, text=_TOKEN_TEXT
    )
    trust_certs_file: str | None = _option(
        "tlsTrustCertsFile", str, None, aliases=("pulsar.client.tlsTrustCertsFilePath",), text=_TRUST_TEXT
    )
    insecure_allowed: bool = _option(
        "tlsAllowInsecureConnection",
        _flag,
        False,
        aliases=("pulsar.client.tlsAllowInsecureConnection",),
        text=_INSECURE_TEXT,
    )
    topic: str | None = _option(
        "topic", _topic, None, purpose=Purpose.WRITE, text="target of all rows; wins over a `__topic` column"
    )
    mode: str = _option(
        "mode", _word("message", "entry"), "message", text="`entry` writes rows of entry mode as they are"
    )
    value_schema: str = _option("valueSchema", _word("raw"), "raw", text="`raw`: column `value`, BINARY or STRING")
    delivery_guarantee: str = _option(
        "deliveryGuarantee",
        _word("at-least-once", "exactly-once"),
        "at-least-once",
        purpose=Purpose.WRITE,
        text="`exactly-once` needs `mode=entry` and `dedup=position`",
    )
    dedup: str | None = _option(
        "dedup",
        _word("none", "position"),
        None,
        purpose=Purpose.WRITE,
        text="`position`: producer name and sequence id come from the source position (entry mode). Default: from the "
        "guarantee",
    )
    producer_name: str | None = _option(
        "producerName", str, None, purpose=Purpose.WRITE, text="name of the lanes; required by `dedup=position`"
    )
    state_path: str | None = _option(
        "statePath",
        str,
        None,
        purpose=Purpose.WRITE,
        text="directory of the lane files. Default: `interpulse` in the checkpoint",
    )
    source_cluster: str | None = _option(
        "replicatedFrom",
        str,
        None,
        purpose=Purpose.WRITE,
        text="cluster name stamped as origin; required by `dedup=position`",
    )
    target_cluster: str | None = _option(
        "targetCluster",
        str,
        None,
        purpose=Purpose.WRITE,
        text="name of the cluster written to; required by `dedup=position`",
    )
    schema_source_url: str | None = _option(
        "schemaSourceUrl",
        _service_url,
        None,
        purpose=Purpose.WRITE,
        text="where schema versions of copied entries are looked up; without it they are left out",
    )
    schema_source_auth_token: str | None = _option(
        "schemaSourceAuthToken", str, None, purpose=Purpose.WRITE, secret=True, text="as `authToken`, for that cluster"
    )
    schema_source_trust_certs_file: str | None = _option(
        "schemaSourceTlsTrustCertsFile",
        str,
        None,
        purpose=Purpose.WRITE,
        text="as `tlsTrustCertsFile`, for that cluster",
    )
    schema_source_insecure_allowed: bool = _option(
        "schemaSourceTlsAllowInsecureConnection",
        _flag,
        False,
        purpose=Purpose.WRITE,
        text="as `tlsAllowInsecureConnection`, for that cluster",
    )
    batching_max_messages: int = _option(
        "batchingMaxMessages",
        _positive,
        1000,
        aliases=("pulsar.producer.batchingMaxMessages",),
        purpose=Purpose.WRITE,
        text="most messages of one Pulsar batch; 1: no batches",
    )
    batching_max_bytes: int = _option(
        "batchingMaxBytes",
        _positive_size,
        128 * 1024,
        aliases=("pulsar.producer.batchingMaxBytes",),
        purpose=Purpose.WRITE,
        text="most payload bytes of one Pulsar batch",
    )
    compression_type: str = _option(
        "compressionType",
        _word("none", "lz4", "zlib", "zstd", "snappy"),
        "none",
        aliases=("pulsar.producer.compressionType",),
        purpose=Purpose.WRITE,
        text="compression of message batches",
    )
    max_pending_bytes: int = _option(
        "maxPendingBytes", _positive_size, 64 << 20, purpose=Purpose.WRITE, text="bytes in flight per task"
    )
    isolate: bool = _option(
        "isolate",
        _flag,
        False,
        purpose=Purpose.WRITE,
        text="exactly-once: a topic that the target refuses is put on hold and tried again, the others go on; needs a "
        "source with `topicsFile`, as in the replication job",
    )
    takeover_timeout_ms: int = _option(
        "producerTakeoverTimeoutMs",
        _whole,
        60_000,
        purpose=Purpose.WRITE,
        text="how long to wait while an earlier attempt still holds the producer name",
    )

    @property
    def access(self) -> Access:
        return Access(self.auth_token, self.trust_certs_file, self.insecure_allowed)

    @property
    def schema_source_access(self) -> Access:
        return Access(
            self.schema_source_auth_token, self.schema_source_trust_certs_file, self.schema_source_insecure_allowed
        )

    @property
    def exactly_once(self) -> bool:
        return self.dedup == "position"


Options = TypeVar("Options", ReadOptions, WriteOptions)


def parse_read_options(mapping: Mapping[str, str], purpose: Purpose = Purpose.READ) -> ReadOptions:
    """Read the options of a read; ``Purpose.READ`` while it is not known yet whether it is a stream."""
    problems: list[str] = []
    values = _read_values(ReadOptions, mapping, purpose, problems)
    _check_selection(values, problems)
    _check_starting(values, purpose, problems)
    return _build(ReadOptions, values, problems)


def parse_write_options(mapping: Mapping[str, str], purpose: Purpose = Purpose.WRITE) -> WriteOptions:
    """Read the options of a write."""
    problems: list[str] = []
    values = _read_values(WriteOptions, mapping, purpose, problems)
    guarantee = values.get("delivery_guarantee", "at-least-once")
    values["dedup"] = values.get("dedup") or ("position" if guarantee == "exactly-once" else "none")
    _check_guarantee(values, guarantee, problems)
    return _build(WriteOptions, values, problems)


def _check_selection(values: Mapping[str, Any], problems: list[str]) -> None:
    chosen = [key for key in ("topics", "topics_pattern", "topics_file") if values.get(key)]
    if len(chosen) != 1:
        problems.append("exactly one of topics, topicsPattern (and in the replication job topicsFile) is needed")


def _check_starting(values: Mapping[str, Any], purpose: Purpose, problems: list[str]) -> None:
    start = values.get("starting_offsets")
    if start == SUBSCRIPTION and not values.get("predefined_subscription"):
        problems.append("startingOffsets=subscription needs predefinedSubscription")
    if start == LATEST and purpose == Purpose.BATCH_READ:
        problems.append("startingOffsets=latest: a batch read would be empty; it is for streams")
    if values.get("ending_offsets") == EARLIEST:
        problems.append("endingOffsets=earliest: the read would be empty")


def _check_guarantee(values: Mapping[str, Any], guarantee: str, problems: list[str]) -> None:
    dedup = values["dedup"]
    if guarantee == "exactly-once" and dedup == "none":
        problems.append("deliveryGuarantee=exactly-once excludes dedup=none")
    if dedup != "position":
        return
    if values.get("mode") != "entry":
        problems.append("dedup=position needs mode=entry")
    problems.extend(
        f"dedup=position needs {name}"
        for name, key in (
            ("producerName", "producer_name"),
            ("replicatedFrom", "source_cluster"),
            ("targetCluster", "target_cluster"),
        )
        if not values.get(key)
    )


def _read_values(
    cls: type[ReadOptions] | type[WriteOptions], mapping: Mapping[str, str], purpose: Purpose, problems: list[str]
) -> dict[str, Any]:
    known = _known_keys(cls)
    values: dict[str, Any] = {}
    given_as: dict[str, tuple[str, str]] = {}
    for key, text in mapping.items():
        if key.lower() in _RESERVED:
            continue
        item = known.get(key.lower())
        if item is None:
            problems.append(f"unknown option {key!r}{_nearest(key, known)}")
        elif not item.metadata["purpose"] & purpose:
            problems.append(f"option {item.metadata['option']} does not apply to {_purpose_text(purpose)}")
        else:
            _read_one(item, key, text, values, given_as, problems)
    return values


def _read_one(
    item: Any,
    key: str,
    text: str,
    values: dict[str, Any],
    given_as: dict[str, tuple[str, str]],
    problems: list[str],
) -> None:
    name = item.metadata["option"]
    earlier = given_as.get(item.name)
    if earlier is not None and earlier[1] != text:
        problems.append(f"options {earlier[0]} and {key} are the same and have different values")
        return
    given_as[item.name] = (key, text)
    try:
        values[item.name] = item.metadata["read"](text)
    except Exception as error:  # noqa: BLE001 - every reader's complaint goes into the one list of problems
        problems.append(f"option {name}: {error}")


def _known_keys(cls: type[ReadOptions] | type[WriteOptions]) -> dict[str, Any]:
    return {key.lower(): item for item in fields(cls) for key in (item.metadata["option"], *item.metadata["aliases"])}


def _nearest(key: str, known: Mapping[str, Any]) -> str:
    spelled = {name: item.metadata["option"] for name, item in known.items()}
    close = difflib.get_close_matches(key.lower(), spelled, n=3, cutoff=0.6)
    names = list(dict.fromkeys(spelled[name] for name in close))
    return f"; did you mean {' or '.join(names)}?" if names else "; see docs/reference/spark-options.md"


def _purpose_text(purpose: Purpose) -> str:
    return {
        Purpose.BATCH_READ: "batch reads",
        Purpose.STREAM_READ: "streams",
        Purpose.BATCH_WRITE: "batch writes",
        Purpose.STREAM_WRITE: "stream writes",
    }.get(purpose, "this query")


def _build(cls: type[Options], values: Mapping[str, Any], problems: list[str]) -> Options:
    if "service_url" not in values and not any("service.url" in problem for problem in problems):
        problems.append("option service.url is required")
    if problems:
        raise OptionError("; ".join(problems))
    return cls(**values)


def documented_options() -> list[tuple[str, str, str, str, str]]:
    """Name, aliases, where it applies, default and text of every option: the reference page."""
    rows: dict[str, tuple[str, str, str, str, str]] = {}
    for cls, where in ((ReadOptions, "read"), (WriteOptions, "write")):
        for item in fields(cls):
            name, purpose = item.metadata["option"], item.metadata["purpose"]
            applies = {Purpose.STREAM_READ: "stream read", Purpose.BATCH_READ: "batch read"}.get(purpose, where)
            if name in rows:
                applies = f"{rows[name][2]}, {applies}"
            aliases = ", ".join(f"`{alias}`" for alias in item.metadata["aliases"])
            rows[name] = (name, aliases, applies, _default_text(item.default), item.metadata["text"])
    return list(rows.values())


def _default_text(value: object) -> str:
    if value is MISSING or value is None or value == ():
        return ""
    if value == LATEST:
        return "latest"
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
