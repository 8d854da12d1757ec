"""Options of reads: the topics, the amount per batch, and the parallelism."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.model.names import NamespaceName
from interpulse.spark.offsets import CutPosition, parse_offsets, parse_times
from interpulse.spark.options.access import Access
from interpulse.spark.options.connection_options import (
    access_options,
    admin_access_options,
    admin_url_option,
    operation_timeout_option,
    outage_timeout_option,
    service_url_option,
)
from interpulse.spark.options.encryption import KeyFiles, parse_key_files
from interpulse.spark.options.option import Purpose, build_options, option, option_name, read_values
from interpulse.spark.options.option_values import (
    one_of,
    parse_assignment,
    parse_duration_ms,
    parse_flag,
    parse_names,
    parse_namespaces,
    parse_pattern,
    parse_positive,
    parse_positive_duration_ms,
    parse_positive_size,
    parse_topics,
)
from interpulse.spark.reading.task_rules import tasks_problems

_TASKS_MAX = 16

SUBSCRIPTION = "subscription"
"""Value of ``startingOffsets``: start after the position that the durable subscription has acknowledged."""


def _starting(text: str) -> str | Position | dict[str, Position]:
    return SUBSCRIPTION if text.strip().lower() == SUBSCRIPTION else parse_offsets(text, inclusive_start=True)


def _ending(text: str) -> Position | dict[str, Position]:
    return parse_offsets(text, inclusive_start=False)


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Checked options of a batch or stream read."""

    service_url: str = service_url_option()
    admin_url: str | None = admin_url_option()
    operation_timeout_ms: int = operation_timeout_option()
    outage_timeout_ms: int | None = outage_timeout_option()
    access: Access = access_options()  # noqa: RUF009 - a dataclass field
    admin_access: Access = admin_access_options()  # noqa: RUF009 - a dataclass field
    topics: tuple[str, ...] = option(
        "topics",
        parse_topics,
        (),
        aliases=("topic", "subscribe"),
        text="topic or comma list of topics; short names expand to `persistent://public/default/`; a partition name "
        "reads that partition only",
    )
    assigned: tuple[str, ...] = option(
        "assign", parse_assignment, (), text='partitions by topic, `{"topic": [0, 1]}`, instead of `topics`'
    )
    topics_pattern: str | None = option(
        "topicsPattern",
        parse_pattern,
        None,
        aliases=("subscribePattern",),
        text="regular expression for the whole `tenant/namespace/topic` of base names; tenant and namespace literal, "
        "unless `namespaces` lists them",
    )
    namespaces: tuple[NamespaceName, ...] = option(
        "namespaces",
        parse_namespaces,
        (),
        text="with `topicsPattern`: comma list of the `tenant/namespace` that are looked through. Default: the one "
        "that the pattern begins with",
    )
    topics_file: str | None = option(
        "topicsFile",
        str,
        None,
        purpose=Purpose.STREAM_READ,
        text="JSON file on the driver that lists topic-partitions, read again when it changes; written by the "
        "replication job",
    )
    topics_exclude: str | None = option(
        "topicsExclude", parse_pattern, None, text="regular expression, applied after inclusion; not with `topicsFile`"
    )
    include_system_topics: bool = option(
        "includeSystemTopics", parse_flag, False, text="whether a pattern may match system topics"
    )
    awaits_topics: bool = option(
        "waitingForNonExistedTopic",
        parse_flag,
        False,
        purpose=Purpose.STREAM_READ,
        text="with `topics` or `assign`: wait for those that do not exist yet, and read them from their first entry",
    )
    starting_offsets: str | Position | dict[str, Position] | None = option(  # noqa: RUF009 - a dataclass field
        "startingOffsets",
        _starting,
        None,
        text="`earliest`, `latest` (streams), `subscription` (with `predefinedSubscription`), or JSON: topic or "
        'partition to `"earliest"`, `"latest"`, `-2`, `-1`, `"ledger:entry"`, `"ledger:entry:batch index"`, a '
        'serialized message id (base64, or a list of its bytes) or `{"partition": value}`; inclusive. '
        "Default: batch `earliest`, stream `latest`. A stream with a checkpoint goes on there, whatever is given",
    )
    ending_offsets: Position | dict[str, Position] = option(  # noqa: RUF009 - a dataclass field
        "endingOffsets", _ending, LATEST, purpose=Purpose.BATCH_READ, text="like `startingOffsets`, inclusive"
    )
    starting_time: int | dict[str, int] | None = option(  # noqa: RUF009 - a dataclass field
        "startingTime",
        parse_times,
        None,
        aliases=("startingTimestamp", "startingOffsetsByTimestamp"),
        text="instead of `startingOffsets`: the first message published at or after this time; milliseconds since the "
        "epoch, ISO 8601 with a zone, or JSON: topic or partition to one of them",
    )
    late_start: str | None = option(
        "startingOffsetsByTimestampStrategy",
        one_of("error", "latest"),
        None,
        text="where a partition has no message at or after `startingTime`: `latest` starts at its end, `error` refuses "
        "the query. Default: batch `error`, stream `latest`",
    )
    ending_time: int | dict[str, int] | None = option(  # noqa: RUF009 - a dataclass field
        "endingTime",
        parse_times,
        None,
        aliases=("endingTimestamp", "endingOffsetsByTimestamp"),
        purpose=Purpose.BATCH_READ,
        text="instead of `endingOffsets`: up to the first message published at or after this time, which is not read; "
        "like `startingTime`",
    )
    mode: str = option(
        "mode",
        one_of("message", "entry"),
        "message",
        text="`message`: one row per message; `entry`: one row per broker entry, opaque",
    )
    value_schema: str = option(
        "valueSchema",
        one_of("auto", "raw"),
        "auto",
        text="`auto`: the columns that the topic's schema makes, or `value` BINARY where it has none; `raw`: always "
        "`value` BINARY. All topics of a query need one schema with `auto`",
    )
    different_schemas_allowed: bool = option(
        "allowDifferentTopicSchemas", parse_flag, False, text="`true` is `valueSchema=raw`"
    )
    parse_mode: str = option(
        "parseMode",
        one_of("failfast", "permissive"),
        "failfast",
        text="what becomes of a payload that is none of its schema: `FAILFAST` ends the query, `PERMISSIVE` makes its "
        "columns null",
    )
    corrupt_column: str = option(
        "columnNameOfCorruptRecord",
        str,
        "_corrupt_record",
        text="with `parseMode=PERMISSIVE`: the BINARY column that holds such a payload",
    )
    column_style: str = option(
        "columnStyle",
        one_of("pulsar", "kafka"),
        "pulsar",
        text="`kafka`: the columns of Spark's Kafka source, `key`, `value`, `topic`, `partition`, `offset`.., with the "
        "payload as bytes",
    )
    headers_included: bool = option(
        "includeHeaders", parse_flag, False, text="with `columnStyle=kafka`: the column `headers`, of the properties"
    )
    include_columns: tuple[str, ...] = option(
        "includeColumns",
        parse_names,
        ("default",),
        aliases=("includeMetadata",),
        text="comma list of columns, or `default`, `all`, `none`",
    )
    fail_on_data_loss: bool = option(
        "failOnDataLoss", parse_flag, True, text="fail when unread entries are no longer there; `false`: warn and go on"
    )
    predefined_subscription: str | None = option(
        "predefinedSubscription",
        str,
        None,
        purpose=Purpose.STREAM_READ,
        text="durable subscription to create on every partition and to advance behind the stream",
    )
    subscription_prefix: str = option(
        "subscriptionPrefix",
        str,
        "spark-interpulse",
        aliases=("pulsar.reader.subscriptionRolePrefix",),
        text="names of the non-durable readers",
    )
    read_compacted: bool = option(
        "readCompacted",
        parse_flag,
        False,
        aliases=("pulsar.reader.readCompacted",),
        text="of what is compacted, read the newest message of each key alone",
    )
    min_entries_per_trigger: int | None = option(
        "minEntriesPerTrigger",
        parse_positive,
        None,
        aliases=("minOffsetsPerTrigger",),
        purpose=Purpose.STREAM_READ,
        text="wait until so many entries are there, or until `maxTriggerDelay`; not with `Trigger.AvailableNow`",
    )
    min_bytes_per_trigger: int | None = option(
        "minBytesPerTrigger",
        parse_positive_size,
        None,
        purpose=Purpose.STREAM_READ,
        text="the same for bytes, by the average entry size seen",
    )
    max_trigger_delay_ms: int = option(
        "maxTriggerDelay",
        parse_positive_duration_ms,
        900_000,
        purpose=Purpose.STREAM_READ,
        text="with `minEntriesPerTrigger` or `minBytesPerTrigger`: the longest that the oldest unread entry waits",
    )
    max_entries_per_trigger: int | None = option(
        "maxEntriesPerTrigger",
        parse_positive,
        None,
        aliases=("maxOffsetsPerTrigger",),
        purpose=Purpose.STREAM_READ,
        text="maximum number of entries in one micro-batch (an entry holds one or more messages)",
    )
    max_bytes_per_trigger: int | None = option(
        "maxBytesPerTrigger",
        parse_positive_size,
        None,
        purpose=Purpose.STREAM_READ,
        text="soft limit of one micro-batch, by the average entry size seen",
    )
    tasks_max: int | None = option(
        "maxPartitions",
        parse_positive,
        None,
        text="maximum number of tasks per batch; ranges are packed into them. Default: 16, or as many as the options "
        "that split ask for",
    )
    min_partitions: int | None = option(
        "minPartitions",
        parse_positive,
        None,
        text="about so many tasks at least: topic-partitions are split where there are fewer, in streams with "
        "`preserveOrder=false` alone",
    )
    max_bytes_per_partition: int | None = option(
        "maxBytesPerPartition",
        parse_positive_size,
        None,
        purpose=Purpose.BATCH_READ,
        text="about so many bytes for one task at most: larger topic-partitions are split",
    )
    max_entries_per_partition: int | None = option(
        "maxEntriesPerPartition",
        parse_positive,
        None,
        aliases=("maxRecordsPerPartition",),
        purpose=Purpose.BATCH_READ,
        text="about so many entries for one task at most: larger topic-partitions are split",
    )
    preserve_order: bool | None = option(
        "preserveOrder",
        parse_flag,
        None,
        text="`true`: one task reads a topic-partition in order; `false`: it may be split. Default: streams `true`, "
        "batch `false`",
    )
    planner: str = option(
        "planner",
        one_of("auto", "admin", "binary"),
        "auto",
        purpose=Purpose.BATCH_READ,
        text="source of the sizes of topic-partitions and the ends of their ledgers, for tasks of equal size: `admin`, "
        "at `admin.url`; `binary`, the brokers, which know little of them; `auto`, `admin` if it answers",
    )
    filter_pushdown: bool = option(
        "filterPushdown",
        parse_flag,
        False,
        purpose=Purpose.BATCH_READ,
        text="read only what filters on topic, partition, position, publish time and, with `keyRouting`, key leave; "
        "needs Spark's setting `spark.sql.python.filterPushdown.enabled`",
    )
    key_routing: str | None = option(
        "keyRouting",
        one_of("hash"),
        None,
        purpose=Purpose.BATCH_READ,
        text="with `filterPushdown`: `hash` states that producers chose the partition by the key, and that no topic "
        "got partitions later; a filter on the key then reads few partitions",
    )
    plan_mode: str = option(
        "planMode",
        one_of("balanced", "stable"),
        "balanced",
        text="`balanced` by bytes, or `stable` by hash of the partition name",
    )
    offset_poll_interval_ms: int = option(
        "offsetPollIntervalMs",
        parse_positive_duration_ms,
        200,
        purpose=Purpose.STREAM_READ,
        text="how often brokers are asked for last positions, at most",
    )
    discovery_interval_ms: int = option(
        "partitionDiscoveryIntervalMs",
        parse_duration_ms,
        30_000,
        purpose=Purpose.STREAM_READ,
        text="how often to look for new partitions and topics; 0 or less: never. Not with `topicsFile`",
    )
    poll_timeout_ms: int = option(
        "pollTimeoutMs",
        parse_positive_duration_ms,
        120_000,
        text="longest silence inside a range that must still deliver",
    )
    fetch_buffer_bytes: int = option(
        "fetchBufferBytes", parse_positive_size, 32 << 20, text="bytes in flight per task, all ranges"
    )
    range_concurrency: int = option(
        "rangeConcurrency", parse_positive, 16, text="ranges fetched at the same time in one task"
    )
    arrow_batch_bytes: int = option(
        "arrowBatchBytes", parse_positive_size, 2 << 20, text="size of emitted Arrow batches"
    )
    arrow_batch_rows: int = option("arrowBatchRows", parse_positive, 8192, text="rows of emitted Arrow batches")
    encryption_private_keys: KeyFiles = option(  # noqa: RUF009 - a dataclass field
        "encryptionPrivateKey",
        parse_key_files,
        (),
        text="file of the private key of encrypted messages, in PEM; or JSON with one for each name of a key, "
        '`{"orders": "/keys/orders.pem"}`. The files have to be on every machine. With `mode=message`',
    )
    crypto_failure_action: str | None = option(
        "cryptoFailureAction",
        one_of("fail", "discard", "consume"),
        None,
        aliases=("pulsar.reader.cryptoFailureAction",),
        text="what becomes of messages that cannot be decrypted: `fail` the query, `discard` them, or `consume`: rows "
        "have the encrypted bytes, and `__encrypted` is true. Default: `fail` with a private key, `consume` without",
    )
    verify_checksum: bool = option("verifyChecksum", parse_flag, True, text="check the CRC32C of every entry")

    @property
    def max_partitions(self) -> int:
        return _TASKS_MAX if self.tasks_max is None else self.tasks_max

    @property
    def included(self) -> tuple[str, ...]:
        """Return the requested columns, or the word that stands for some."""
        return ("all",) if self.headers_included and self.include_columns == ("default",) else self.include_columns

    @property
    def is_typed(self) -> bool:
        """Return True if the topics' schema determines the columns of the payload."""
        return self.mode == "message" and self.column_style == "pulsar" and self.value_schema == "auto"


def parse_read_options(mapping: Mapping[str, str], purpose: Purpose = Purpose.READ) -> ReadOptions:
    """Parse the options of a read. Pass ``Purpose.READ`` while it is unknown whether it is a stream."""
    problems: list[str] = []
    values = read_values(ReadOptions, mapping, purpose, problems)
    _check_selection(values, problems)
    _check_starting(values, purpose, problems)
    _settle_columns(values, problems)
    if values.get("mode") == "entry":
        _refuse_idle(("encryption_private_keys", "crypto_failure_action"), "mode=message", values, problems)
    problems.extend(tasks_problems(values, purpose))
    return build_options(ReadOptions, values, problems)


_IDLE_WITH = {
    "topics": ("include_system_topics", "namespaces"),
    "assigned": ("include_system_topics", "namespaces", "discovery_interval_ms"),
    "topics_pattern": ("awaits_topics",),
    "topics_file": ("include_system_topics", "namespaces", "awaits_topics", "discovery_interval_ms", "topics_exclude"),
}
"""Options that would have no effect beside each way to name topics, which are refused."""


def _check_selection(values: Mapping[str, Any], problems: list[str]) -> None:
    chosen = [key for key in _IDLE_WITH if values.get(key)]
    if len(chosen) != 1:
        problems.append(
            "exactly one of topic, topics, assign, topicsPattern (and in the replication job topicsFile) is needed"
        )
        return
    way = option_name(ReadOptions, chosen[0])
    problems.extend(
        f"{option_name(ReadOptions, key)} does nothing with {way}" for key in _IDLE_WITH[chosen[0]] if key in values
    )


def _settle_columns(values: dict[str, Any], problems: list[str]) -> None:
    """Refuse column options that exclude each other, and join those that mean the same."""
    if values.get("different_schemas_allowed") and values.setdefault("value_schema", "raw") != "raw":
        problems.append("allowDifferentTopicSchemas=true and valueSchema=auto contradict each other")
    is_kafka = values.get("column_style") == "kafka"
    idle: tuple[str, ...]
    if values.get("mode") == "entry":
        needed, idle = "mode=message", (*_TYPED_ONLY, "column_style", "headers_included")
    elif is_kafka:
        needed, idle = "columnStyle=pulsar", _TYPED_ONLY
    else:
        needed, idle = "columnStyle=kafka", ("headers_included",)
    _refuse_idle(idle, needed, values, problems)
    if values.get("value_schema") == "auto" and (is_kafka or values.get("mode") == "entry"):
        problems.append(f"valueSchema=auto only counts with {needed}")
    if "corrupt_column" in values and values.get("parse_mode") != "permissive":
        problems.append("columnNameOfCorruptRecord only counts with parseMode=PERMISSIVE")
    if values.get("parse_mode") and values.get("value_schema") == "raw":
        problems.append("parseMode only counts with valueSchema=auto")


_TYPED_ONLY = ("parse_mode", "corrupt_column")


def _refuse_idle(fields: Iterable[str], needed: str, values: Mapping[str, Any], problems: list[str]) -> None:
    problems.extend(f"{option_name(ReadOptions, key)} only counts with {needed}" for key in fields if key in values)


def _check_starting(values: Mapping[str, Any], purpose: Purpose, problems: list[str]) -> None:
    start = values.get("starting_offsets")
    problems.extend(
        f"{end}Offsets and {end}Time exclude each other"
        for end in ("starting", "ending")
        if f"{end}_offsets" in values and f"{end}_time" in values
    )
    offsets = [values.get("starting_offsets"), values.get("ending_offsets")]
    cuts = [point for points in offsets if isinstance(points, dict) for point in points.values()]
    if values.get("mode") == "entry" and any(isinstance(point, CutPosition) for point in cuts):
        problems.append("positions with a batch index only count with mode=message: entries are read whole")
    if "max_trigger_delay_ms" in values and not {"min_entries_per_trigger", "min_bytes_per_trigger"} & set(values):
        problems.append("maxTriggerDelay only counts with minEntriesPerTrigger or minBytesPerTrigger")
    if values.get("awaits_topics") and values.get("discovery_interval_ms", 1) <= 0:
        problems.append(
            "waitingForNonExistedTopic needs a partitionDiscoveryIntervalMs above 0: topics are looked for then"
        )
    if "late_start" in values and "starting_time" not in values:
        problems.append("startingOffsetsByTimestampStrategy only counts with startingTime")
    if start == SUBSCRIPTION and not values.get("predefined_subscription"):
        problems.append("startingOffsets=subscription needs predefinedSubscription")
    if start == LATEST and purpose == Purpose.BATCH_READ:
        problems.append("startingOffsets=latest: a batch read would be empty; `latest` is for streams")
    if values.get("ending_offsets") == EARLIEST:
        problems.append("endingOffsets=earliest: the read would be empty")
