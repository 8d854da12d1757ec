"""Options of reads: the topics, the amount per batch, and the parallelism."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.setting_values import parse_duration_ms, parse_pattern
from interpulse.spark.offsets import CutPosition, parse_offsets, parse_times
from interpulse.spark.options.connection_options import (
    Access,
    access_options,
    admin_access_options,
    admin_url_option,
    operation_timeout_option,
    outage_timeout_option,
    service_url_option,
)
from interpulse.spark.options.option import Purpose, build_options, idle_options, option, option_name, read_values
from interpulse.spark.options.option_values import (
    KeyFiles,
    choice,
    count,
    duration,
    flag,
    one_of,
    parse_assignment,
    parse_key_files,
    parse_names,
    parse_namespaces,
    parse_topics,
    size,
)

_TASKS_MAX = 16
_BATCH, _STREAM = Purpose.BATCH_READ, Purpose.STREAM_READ

SUBSCRIPTION = "subscription"
"""Value of ``startingOffsets``: start after the position that the durable subscription has acknowledged."""


def _starting(text: str) -> str | Position | dict[str, Position]:
    return SUBSCRIPTION if text.strip().lower() == SUBSCRIPTION else parse_offsets(text, inclusive_start=True)


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Checked options of a batch or stream read."""

    service_url: str = service_url_option()
    admin_url: str | None = admin_url_option()
    operation_timeout_ms: int = operation_timeout_option()
    outage_timeout_ms: int | None = outage_timeout_option()
    access: Access = access_options()
    admin_access: Access = admin_access_options()
    topics: tuple[str, ...] = option(
        (),
        "topic or comma list of topics; short names expand to `persistent://public/default/`; a partition name "
        "reads that partition only",
        parse_topics,
        aliases=("topic", "subscribe"),
    )
    assigned: tuple[str, ...] = option(
        (), 'partitions by topic, `{"topic": [0, 1]}`, instead of `topics`', parse_assignment, name="assign"
    )
    topics_pattern: str | None = option(
        None,
        "regular expression for the whole `tenant/namespace/topic` of base names; tenant and namespace literal, "
        "unless `namespaces` lists them",
        parse_pattern,
        aliases=("subscribePattern",),
    )
    namespaces: tuple[NamespaceName, ...] = option(
        (),
        "with `topicsPattern`: comma list of the `tenant/namespace` that are looked through. Default: the one "
        "that the pattern begins with",
        parse_namespaces,
    )
    topics_file: str | None = option(
        None,
        "JSON file on the driver that lists topic-partitions, read again when it changes; written by the "
        "replication job",
        purpose=_STREAM,
    )
    topics_exclude: str | None = option(
        None, "regular expression, applied after inclusion; not with `topicsFile`", parse_pattern
    )
    include_system_topics: bool = flag(False, "whether a pattern may match system topics")
    awaits_topics: bool = flag(
        False,
        "with `topics` or `assign`: wait for those that do not exist yet, and read them from their first entry",
        name="waitingForNonExistedTopic",
        purpose=_STREAM,
    )
    starting_offsets: str | Position | dict[str, Position] | None = option(
        None,
        "`earliest`, `latest` (streams), `subscription` (with `predefinedSubscription`), or JSON: topic or "
        'partition to `"earliest"`, `"latest"`, `-2`, `-1`, `"ledger:entry"`, `"ledger:entry:batch index"`, a '
        'serialized message id (base64, or a list of its bytes) or `{"partition": value}`; inclusive. '
        "Default: batch `earliest`, stream `latest`. A stream with a checkpoint goes on there, whatever is given",
        _starting,
    )
    ending_offsets: Position | dict[str, Position] = option(
        LATEST, "like `startingOffsets`, inclusive", partial(parse_offsets, inclusive_start=False), purpose=_BATCH
    )
    starting_time: int | dict[str, int] | None = option(
        None,
        "instead of `startingOffsets`: the first message published at or after this time; milliseconds since the "
        "epoch, ISO 8601 with a zone, or JSON: topic or partition to one of them",
        parse_times,
        aliases=("startingTimestamp", "startingOffsetsByTimestamp"),
    )
    late_start: str | None = option(
        None,
        "where a partition has no message at or after `startingTime`: `latest` starts at its end, `error` refuses "
        "the query. Default: batch `error`, stream `latest`",
        one_of("error", "latest"),
        name="startingOffsetsByTimestampStrategy",
    )
    ending_time: int | dict[str, int] | None = option(
        None,
        "instead of `endingOffsets`: up to the first message published at or after this time, which is not read; "
        "like `startingTime`",
        parse_times,
        aliases=("endingTimestamp", "endingOffsetsByTimestamp"),
        purpose=_BATCH,
    )
    mode: str = choice(
        ("message", "entry"), "`message`: one row per message; `entry`: one row per broker entry, opaque"
    )
    value_schema: str = choice(
        ("auto", "raw"),
        "`auto`: the columns that the topic's schema makes, or `value` BINARY where it has none; `raw`: always "
        "`value` BINARY. All topics of a query need one schema with `auto`",
    )
    different_schemas_allowed: bool = flag(False, "`true` is `valueSchema=raw`", name="allowDifferentTopicSchemas")
    parse_mode: str = choice(
        ("failfast", "permissive"),
        "what becomes of a payload that is none of its schema: `FAILFAST` ends the query, `PERMISSIVE` makes its "
        "columns null",
    )
    corrupt_column: str = option(
        "_corrupt_record",
        "with `parseMode=PERMISSIVE`: the BINARY column that holds such a payload",
        name="columnNameOfCorruptRecord",
    )
    column_style: str = choice(
        ("pulsar", "kafka"),
        "`kafka`: the columns of Spark's Kafka source, `key`, `value`, `topic`, `partition`, `offset`.., with the "
        "payload as bytes",
    )
    headers_included: bool = flag(
        False, "with `columnStyle=kafka`: the column `headers`, of the properties", name="includeHeaders"
    )
    include_columns: tuple[str, ...] = option(
        ("default",), "comma list of columns, or `default`, `all`, `none`", parse_names, aliases=("includeMetadata",)
    )
    fail_on_data_loss: bool = flag(True, "fail when unread entries are no longer there; `false`: warn and go on")
    predefined_subscription: str | None = option(
        None, "durable subscription to create on every partition and to advance behind the stream", purpose=_STREAM
    )
    subscription_prefix: str = option(
        "spark-interpulse", "names of the non-durable readers", aliases=("pulsar.reader.subscriptionRolePrefix",)
    )
    read_compacted: bool = flag(
        False,
        "of what is compacted, read the newest message of each key alone",
        aliases=("pulsar.reader.readCompacted",),
    )
    min_entries_per_trigger: int | None = count(
        None,
        "wait until so many entries are there, or until `maxTriggerDelay`; not with `Trigger.AvailableNow`",
        aliases=("minOffsetsPerTrigger",),
        purpose=_STREAM,
    )
    min_bytes_per_trigger: int | None = size(
        None, "the same for bytes, by the average entry size seen", purpose=_STREAM
    )
    max_trigger_delay_ms: int = duration(
        900_000,
        "with `minEntriesPerTrigger` or `minBytesPerTrigger`: the longest that the oldest unread entry waits",
        name="maxTriggerDelay",
        purpose=_STREAM,
    )
    max_entries_per_trigger: int | None = count(
        None,
        "maximum number of entries in one micro-batch (an entry holds one or more messages)",
        aliases=("maxOffsetsPerTrigger",),
        purpose=_STREAM,
    )
    max_bytes_per_trigger: int | None = size(
        None, "soft limit of one micro-batch, by the average entry size seen", purpose=_STREAM
    )
    tasks_max: int | None = count(
        None,
        "maximum number of tasks per batch; ranges are packed into them. Default: 16, or as many as the options "
        "that split ask for",
        name="maxPartitions",
    )
    min_partitions: int | None = count(
        None,
        "about so many tasks at least: topic-partitions are split where there are fewer, in streams with "
        "`preserveOrder=false` alone",
    )
    max_bytes_per_partition: int | None = size(
        None, "about so many bytes for one task at most: larger topic-partitions are split", purpose=_BATCH
    )
    max_entries_per_partition: int | None = count(
        None,
        "about so many entries for one task at most: larger topic-partitions are split",
        aliases=("maxRecordsPerPartition",),
        purpose=_BATCH,
    )
    preserve_order: bool | None = flag(
        None,
        "`true`: one task reads a topic-partition in order; `false`: it may be split. Default: streams `true`, "
        "batch `false`",
    )
    planner: str = choice(
        ("auto", "admin", "binary"),
        "source of the sizes of topic-partitions and the ends of their ledgers, for tasks of equal size: `admin`, "
        "at `admin.url`; `binary`, the brokers, which know little of them; `auto`, `admin` if it answers",
        purpose=_BATCH,
    )
    filter_pushdown: bool = flag(
        False,
        "read only what filters on topic, partition, position, publish time and, with `keyRouting`, key leave; "
        "needs Spark's setting `spark.sql.python.filterPushdown.enabled`",
        purpose=_BATCH,
    )
    key_routing: str | None = option(
        None,
        "with `filterPushdown`: `hash` states that producers chose the partition by the key, and that no topic "
        "got partitions later; a filter on the key then reads few partitions",
        one_of("hash"),
        purpose=_BATCH,
    )
    plan_mode: str = choice(("balanced", "stable"), "`balanced` by bytes, or `stable` by hash of the partition name")
    offset_poll_interval_ms: int = duration(
        200, "how often brokers are asked for last positions, at most", purpose=_STREAM
    )
    discovery_interval_ms: int = option(
        30_000,
        "how often to look for new partitions and topics; 0 or less: never. Not with `topicsFile`",
        parse_duration_ms,
        name="partitionDiscoveryIntervalMs",
        purpose=_STREAM,
    )
    poll_timeout_ms: int = duration(120_000, "longest silence inside a range that must still deliver")
    fetch_buffer_bytes: int = size(32 << 20, "bytes in flight per task, all ranges")
    range_concurrency: int = count(16, "ranges fetched at the same time in one task")
    arrow_batch_bytes: int = size(2 << 20, "size of emitted Arrow batches")
    arrow_batch_rows: int = count(8192, "rows of emitted Arrow batches")
    encryption_private_keys: KeyFiles = option(
        (),
        "file of the private key of encrypted messages, in PEM; or JSON with one for each name of a key, "
        '`{"orders": "/keys/orders.pem"}`. The files have to be on every machine. With `mode=message`',
        parse_key_files,
        name="encryptionPrivateKey",
    )
    crypto_failure_action: str | None = option(
        None,
        "what becomes of messages that cannot be decrypted: `fail` the query, `discard` them, or `consume`: rows "
        "have the encrypted bytes, and `__encrypted` is true. Default: `fail` with a private key, `consume` without",
        one_of("fail", "discard", "consume"),
        aliases=("pulsar.reader.cryptoFailureAction",),
    )
    verify_checksum: bool = flag(True, "check the CRC32C of every entry")

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

    def names(self, topic: TopicName | str) -> bool:
        """Return True if a topic or the partitioned topic of a partition is selected, whether it exists or not."""
        name = topic if isinstance(topic, TopicName) else TopicName.parse(topic)
        listed = self.topics or self.assigned
        chosen = name if str(name) in listed else name.base
        plain = f"{chosen.namespace_name}/{chosen.local_name}"
        if self.topics_exclude is not None and re.search(self.topics_exclude, plain) is not None:
            return False
        if self.topics_pattern is None:
            return str(chosen) in listed
        matches = re.fullmatch(self.topics_pattern.removeprefix("persistent://"), plain) is not None
        return matches and (self.include_system_topics or not chosen.is_system)


def parse_read_options(mapping: Mapping[str, str], purpose: Purpose = Purpose.READ) -> ReadOptions:
    """Parse the options of a read. Pass ``Purpose.READ`` while it is unknown whether it is a stream."""
    problems: list[str] = []
    values = read_values(ReadOptions, mapping, purpose, problems)
    if values.get("different_schemas_allowed") and values.setdefault("value_schema", "raw") != "raw":
        problems.append("allowDifferentTopicSchemas=true and valueSchema=auto contradict each other")
    for check in (_selection_problems, _starting_problems, _column_problems, _task_problems):
        problems.extend(check(values, purpose))
    return build_options(ReadOptions, values, problems)


_IDLE_WITH: Final = {
    "topics": ("include_system_topics", "namespaces"),
    "assigned": ("include_system_topics", "namespaces", "discovery_interval_ms"),
    "topics_pattern": ("awaits_topics",),
    "topics_file": ("include_system_topics", "namespaces", "awaits_topics", "discovery_interval_ms", "topics_exclude"),
}
"""Options that would have no effect beside each way to name topics, which are refused."""


def _selection_problems(values: Mapping[str, Any], purpose: Purpose) -> Iterator[str]:
    chosen = [key for key in _IDLE_WITH if values.get(key)]
    if len(chosen) != 1:
        yield "exactly one of topic, topics, assign, topicsPattern (and in the replication job topicsFile) is needed"
        return
    for key in _IDLE_WITH[chosen[0]]:
        if key in values:
            yield f"{option_name(ReadOptions, key)} does nothing with {option_name(ReadOptions, chosen[0])}"
    if values.get("awaits_topics") and values.get("discovery_interval_ms", 1) <= 0:
        yield "waitingForNonExistedTopic needs a partitionDiscoveryIntervalMs above 0: topics are looked for then"


def _starting_problems(values: Mapping[str, Any], purpose: Purpose) -> Iterator[str]:
    start, end = values.get("starting_offsets"), values.get("ending_offsets")
    for side in ("starting", "ending"):
        if f"{side}_offsets" in values and f"{side}_time" in values:
            yield f"{side}Offsets and {side}Time exclude each other"
    points = [point for positions in (start, end) if isinstance(positions, dict) for point in positions.values()]
    if values.get("mode") == "entry" and any(isinstance(point, CutPosition) for point in points):
        yield "positions with a batch index only count with mode=message: entries are read whole"
    if "max_trigger_delay_ms" in values and not {"min_entries_per_trigger", "min_bytes_per_trigger"} & set(values):
        yield "maxTriggerDelay only counts with minEntriesPerTrigger or minBytesPerTrigger"
    if "late_start" in values and "starting_time" not in values:
        yield "startingOffsetsByTimestampStrategy only counts with startingTime"
    if start == SUBSCRIPTION and not values.get("predefined_subscription"):
        yield "startingOffsets=subscription needs predefinedSubscription"
    if start == LATEST and purpose == Purpose.BATCH_READ:
        yield "startingOffsets=latest: a batch read would be empty; `latest` is for streams"
    if end == EARLIEST:
        yield "endingOffsets=earliest: the read would be empty"


def _column_problems(values: Mapping[str, Any], purpose: Purpose) -> Iterator[str]:
    is_entry, is_kafka = values.get("mode") == "entry", values.get("column_style") == "kafka"
    typed_only, needed = ("parse_mode", "corrupt_column"), "mode=message" if is_entry else "columnStyle=pulsar"
    if is_entry:
        idle = (*typed_only, "column_style", "headers_included", "encryption_private_keys", "crypto_failure_action")
        yield from idle_options(ReadOptions, dict.fromkeys(idle, needed), values)
    elif is_kafka:
        yield from idle_options(ReadOptions, dict.fromkeys(typed_only, needed), values)
    elif "headers_included" in values:
        yield "includeHeaders only counts with columnStyle=kafka"
    if values.get("value_schema") == "auto" and (is_kafka or is_entry):
        yield f"valueSchema=auto only counts with {needed}"
    if "corrupt_column" in values and values.get("parse_mode") != "permissive":
        yield "columnNameOfCorruptRecord only counts with parseMode=PERMISSIVE"
    if values.get("parse_mode") and values.get("value_schema") == "raw":
        yield "parseMode only counts with valueSchema=auto"


def _task_problems(values: Mapping[str, Any], purpose: Purpose) -> Iterator[str]:
    keys = ("min_partitions", "max_bytes_per_partition", "max_entries_per_partition")
    splitting = [option_name(ReadOptions, key) for key in keys if key in values]
    least, most = values.get("min_partitions"), values.get("tasks_max")
    if least is not None and most is not None and least > most:
        yield f"minPartitions={least} is above maxPartitions={most}"
    if splitting and values.get("preserve_order") is True:
        yield f"{splitting[0]} splits topic-partitions: it excludes preserveOrder=true"
    if purpose == Purpose.STREAM_READ:
        if splitting and values.get("preserve_order") is None:
            yield f"{splitting[0]} splits topic-partitions: in a stream it needs preserveOrder=false"
        if not splitting and values.get("preserve_order") is False:
            yield "preserveOrder=false only counts with minPartitions"
    if values.get("plan_mode") == "stable" and splitting:
        yield f"{splitting[0]} only counts with planMode=balanced"
    if values.get("planner") == "admin" and not values.get("admin_url"):
        yield "planner=admin needs admin.url, where it asks"
    if "key_routing" in values and not values.get("filter_pushdown"):
        yield "keyRouting only counts with filterPushdown=true"
