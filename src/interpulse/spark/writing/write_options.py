"""Options of writes: target, format and delivery guarantees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from interpulse.client.encryption.entries import ProducerCryptoFailureAction
from interpulse.client.producing.partition_producer import HashingScheme, RoutingMode
from interpulse.replication.setting_values import parse_duration_ms, parse_service_url
from interpulse.spark.options.connection_options import (
    Access,
    access_options,
    admin_access_options,
    admin_url_option,
    operation_timeout_option,
    outage_timeout_option,
    service_url_option,
)
from interpulse.spark.options.option import (
    OptionError,
    Purpose,
    build_options,
    idle_options,
    option,
    option_name,
    read_values,
)
from interpulse.spark.options.option_values import (
    KeyFiles,
    choice,
    count,
    flag,
    one_of,
    parse_creation,
    parse_hashing_scheme,
    parse_key_files,
    parse_names,
    parse_routing_mode,
    parse_topic,
    parse_waiting,
    parse_whole,
    size,
)
from interpulse.spark.topic_map import TopicMap, parse_topic_map


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """The options of a batch or stream write."""

    service_url: str = service_url_option()
    admin_url: str | None = admin_url_option()
    operation_timeout_ms: int = operation_timeout_option()
    outage_timeout_ms: int | None = outage_timeout_option()
    access: Access = access_options()
    admin_access: Access = admin_access_options()
    topic: str | None = option(None, "target of all rows; wins over a `__topic` column", parse_topic)
    create_topics: str | int = option(
        "auto",
        "whether missing topics are created: `auto` leaves it to the broker's policy, as for "
        "any producer; `false` refuses them; a number creates them with that many partitions (0: not partitioned) "
        "through `admin.url`. With `mode=entry` the default is `false`",
        parse_creation,
    )
    mode: str = choice(("message", "entry"), "`entry` writes rows of entry mode as they are")
    value_schema: str = choice(
        ("auto", "raw"),
        "`auto`: a single column `value` of BINARY or STRING is the payload as it is, any other columns are "
        "encoded by the topic's schema, or by the one they make where it has none; `raw`: always the former. Bytes "
        "are written under the schema that the topic has, which they must fit",
    )
    column_style: str = choice(
        ("pulsar", "kafka"),
        "`kafka`: rows have the columns of Spark's Kafka sink: `key`, `value`, `topic`, `partition`, `headers`",
    )
    schema_type: str = choice(
        ("avro", "json"), "`AVRO` or `JSON`: the schema that columns make for a topic that has none"
    )
    delivery_guarantee: str = choice(
        ("at-least-once", "exactly-once"),
        "`exactly-once`: a stream with a `checkpointLocation` stores every row once, whatever is killed and "
        "repeated; the topics have to be there and to de-duplicate",
    )
    dedup: str | None = option(
        None,
        "exactly-once: the mark of a repeat. `position`: the source position (default of `mode=entry`); `batch`: "
        "micro-batch and content of a row (default of `mode=message`), which a repeated batch has to make again; "
        "`column`: ids of your own in `__sequenceId`, BIGINT, rising per topic-partition and producer "
        "(`__producerName`, or `producerName`)",
        one_of("none", "position", "batch", "column"),
    )
    producer_name: str | None = option(
        None, "producer name. Default with exactly-once: `interpulse.<id of the query>`, which the checkpoint keeps"
    )
    lane_epoch: int = option(
        0,
        "exactly-once: another number gives other producer names, which know nothing of what was written before; "
        "to confirm that a source was rebuilt",
        parse_whole,
    )
    state_path: str | None = option(
        None, "exactly-once: directory of the lane files, on the driver. Default: `interpulse` in the checkpoint"
    )
    source_cluster: str | None = option(
        None, "replication: cluster name noted as origin of the entries", name="replicatedFrom"
    )
    forward: str = choice(
        ("none", "origin"),
        "replication: `origin` also copies entries that came from other clusters, as in the middle of a chain; "
        "their origin stays, and none goes back to where it was published",
    )
    target_cluster: str | None = option(
        None,
        "replication: name of the cluster written to; entries that came from another one, or are meant for "
        "others, are left out",
    )
    topic_map: TopicMap = option(
        TopicMap(),
        "exactly-once: under which names topics are written, as `[map]` of the replication job: "
        '`{"rules": [{"from": "shop/orders/(.*)", "to": "store/orders/$1"}], "merge": false}`',
        parse_topic_map,
    )
    schema_source_url: str | None = option(
        None,
        "service URL of the cluster whose schemas the copied entries use; without it they are written without one",
        parse_service_url,
    )
    schema_source_access: Access = access_options("schemaSource")
    batching_max_messages: int = count(
        1000,
        "maximum number of messages in one Pulsar batch; 1: no batches",
        aliases=("pulsar.producer.batchingMaxMessages",),
    )
    batching_max_bytes: int = size(
        128 * 1024, "maximum payload bytes of one Pulsar batch", aliases=("pulsar.producer.batchingMaxBytes",)
    )
    compression_type: str = choice(
        ("none", "lz4", "zlib", "zstd", "snappy"),
        "compression of message batches",
        aliases=("pulsar.producer.compressionType",),
    )
    routing_mode: RoutingMode = option(
        "round-robin",
        "where rows without key go: `RoundRobinPartition`, all of an Arrow batch to one partition in turn; "
        "`SinglePartition`, all of a task to one partition",
        parse_routing_mode,
        name="messageRoutingMode",
        aliases=("pulsar.producer.messageRoutingMode",),
    )
    encryption_keys: tuple[str, ...] = option(
        (),
        "comma list of the names of public keys: any of their private keys decrypts the messages",
        parse_names,
        aliases=("pulsar.producer.encryptionKeys",),
    )
    encryption_public_keys: KeyFiles = option(
        (),
        "with `encryptionKeys`: file of the public key, in PEM; or JSON with one for each name, "
        '`{"orders": "/keys/orders.pem"}`. The files have to be on every machine',
        parse_key_files,
        name="encryptionPublicKey",
    )
    crypto_failure_action: ProducerCryptoFailureAction = choice(
        ("fail", "send"),
        "with `encryptionKeys`: messages that cannot be encrypted `fail` the query, or are `send` as they are",
        aliases=("pulsar.producer.cryptoFailureAction",),
    )
    hashing_scheme: HashingScheme = option(
        "murmur3",
        "which hash of the key chooses the partition: `Murmur3_32Hash`, or `JavaStringHash`, which producers of "
        "Pulsar's Java client have by default",
        parse_hashing_scheme,
        aliases=("pulsar.producer.hashingScheme",),
    )
    send_timeout_ms: int = option(
        0,
        "longest wait for the receipt of an entry, before the task fails; 0: as long as it takes",
        parse_duration_ms,
        aliases=("pulsar.producer.sendTimeoutMs", "sendTimeout"),
    )
    waits_when_full: bool = option(
        True,
        "`true` alone is taken: rows wait while `maxPendingBytes` are in flight",
        parse_waiting,
        name="blockIfQueueFull",
        aliases=("pulsar.producer.blockIfQueueFull",),
    )
    max_pending_bytes: int = size(64 << 20, "bytes in flight per task")
    isolate: bool = flag(
        False,
        "exactly-once: a topic that the target refuses is held and retried, the others go on; needs a "
        "source with `topicsFile`, as in the replication job",
    )
    assume_deduplication: bool = flag(
        False,
        "exactly-once: you know that the topics written to de-duplicate. Otherwise `admin.url` is asked, or "
        "without one the first entry tells",
    )
    takeover_timeout_ms: int = option(
        60_000,
        "how long to wait while an earlier attempt still holds the producer name",
        parse_whole,
        name="producerTakeoverTimeoutMs",
    )

    @property
    def exactly_once(self) -> bool:
        return self.dedup != "none"


def parse_write_options(mapping: Mapping[str, str], purpose: Purpose = Purpose.WRITE) -> WriteOptions:
    """Parse the options of a write."""
    problems: list[str] = []
    values = read_values(WriteOptions, mapping, purpose, problems)
    own = "position" if values.get("mode") == "entry" else "batch"
    exactly_once = values.get("delivery_guarantee") == "exactly-once"
    values["dedup"] = values.get("dedup") or (own if exactly_once else "none")
    is_lane = values["dedup"] != "none"
    # Entries are copied to topics that exist already, unless the caller asks for more.
    values.setdefault("create_topics", "false" if values.get("mode") == "entry" or is_lane else "auto")
    if is_lane and purpose == Purpose.BATCH_WRITE:
        raise OptionError(
            "exactly-once is for streams, a batch write has no checkpoint to continue from: read with "
            "spark.readStream, and write with .writeStream and .trigger(availableNow=True)"
        )
    for check in (_guarantee_problems, _effect_problems, _encryption_problems):
        problems.extend(check(values))
    return build_options(WriteOptions, values, problems)


def _guarantee_problems(values: Mapping[str, Any]) -> Iterator[str]:
    dedup, creation = values["dedup"], values["create_topics"]
    if creation != "false" and dedup != "none":
        yield "exactly-once writes to existing topics that de-duplicate: leave createTopics out"
    elif isinstance(creation, int) and not values.get("admin_url"):
        yield f"createTopics={creation} needs admin.url, where the topics are created"
    if values.get("delivery_guarantee") == "exactly-once" and dedup == "none":
        yield "deliveryGuarantee=exactly-once excludes dedup=none"
    if dedup == "position" and values.get("mode") != "entry":
        yield 'dedup=position counts source entries: add .option("mode", "entry"), or leave dedup out'
    if dedup in ("batch", "column") and values.get("mode") == "entry":
        yield f"dedup={dedup} counts messages, and mode=entry writes entries: leave dedup out"
    missing = [option_name(WriteOptions, key) for key in ("source_cluster", "target_cluster") if not values.get(key)]
    if values.get("forward") == "origin" and missing:
        yield "forward=origin only counts with replicatedFrom and targetCluster"
    if dedup == "position" and len(missing) == 1:
        yield f'replicatedFrom and targetCluster count together: add .option("{missing[0]}", "<name of that cluster>")'


_ONLY_EXACTLY_ONCE = (
    *("assume_deduplication", "forward", "isolate", "lane_epoch", "source_cluster", "state_path"),
    *("takeover_timeout_ms", "target_cluster", "topic_map"),
)
_ONLY_ENTRIES = (
    *("forward", "isolate", "schema_source_access", "schema_source_url", "source_cluster", "target_cluster"),
    "topic_map",
)
_ONLY_MESSAGES = (
    *("column_style", "hashing_scheme", "routing_mode", "schema_type", "value_schema", "batching_max_bytes"),
    *("batching_max_messages", "compression_type", "encryption_keys", "encryption_public_keys"),
    "crypto_failure_action",
)


def _effect_problems(values: Mapping[str, Any]) -> Iterator[str]:
    """Refuse options without effect."""
    is_entry, is_lane = values.get("mode") == "entry", values["dedup"] != "none"
    needed = dict.fromkeys(_ONLY_MESSAGES, "mode=message") if is_entry else dict.fromkeys(_ONLY_ENTRIES, "mode=entry")
    if not is_lane:
        needed |= dict.fromkeys(_ONLY_EXACTLY_ONCE, "deliveryGuarantee=exactly-once")
    yield from idle_options(WriteOptions, needed, values)
    if values.get("column_style") == "kafka":
        typed_only = dict.fromkeys(("schema_type", "value_schema"), "columnStyle=pulsar")
        yield from idle_options(WriteOptions, typed_only, values)
        if values["dedup"] == "column":
            yield "dedup=column reads __sequenceId, which columnStyle=kafka has not: leave one of them out"
    if values.get("send_timeout_ms") and is_lane:
        yield "sendTimeoutMs only counts with deliveryGuarantee=at-least-once: lanes wait for every receipt"
    if "schema_type" in values and values.get("value_schema") == "raw":
        yield "schemaType only counts with valueSchema=auto"
    if "schema_source_access" in values and "schema_source_url" not in values:
        yield "access to schemaSource only counts with schemaSourceUrl"


def _encryption_problems(values: Mapping[str, Any]) -> Iterator[str]:
    """Refuse encryption where lanes read back what a killed task has stored, and compare it with their rows."""
    is_encrypted = bool(values.get("encryption_keys"))
    if is_encrypted != bool(values.get("encryption_public_keys")):
        yield "encryptionKeys and encryptionPublicKey need each other: the names, and the files of the keys"
    if "crypto_failure_action" in values and not is_encrypted:
        yield "cryptoFailureAction only counts with encryptionKeys"
    if is_encrypted and values["dedup"] != "none":
        yield "encryptionKeys only counts with deliveryGuarantee=at-least-once: exactly-once reads back what is stored"
