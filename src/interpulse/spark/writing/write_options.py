"""Options of writes: target, format and delivery guarantees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interpulse.client.encryption.encryptor import ProducerCryptoFailureAction
from interpulse.client.producing.router import HashingScheme, RoutingMode
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
from interpulse.spark.options.option import OptionError, Purpose, build_options, option, option_name, read_values
from interpulse.spark.options.option_values import (
    one_of,
    parse_creation,
    parse_duration_ms,
    parse_flag,
    parse_hashing_scheme,
    parse_names,
    parse_positive,
    parse_positive_size,
    parse_routing_mode,
    parse_service_url,
    parse_topic,
    parse_waiting,
    parse_whole,
)
from interpulse.spark.topic_map import TopicMap, parse_topic_map


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """The options of a batch or stream write."""

    service_url: str = service_url_option()
    admin_url: str | None = admin_url_option()
    operation_timeout_ms: int = operation_timeout_option()
    outage_timeout_ms: int | None = outage_timeout_option()
    access: Access = access_options()  # noqa: RUF009 - a dataclass field
    admin_access: Access = admin_access_options()  # noqa: RUF009 - a dataclass field
    topic: str | None = option("topic", parse_topic, None, text="target of all rows; wins over a `__topic` column")
    create_topics: str | int = option(
        "createTopics",
        parse_creation,
        "auto",
        text="whether missing topics are created: `auto` leaves it to the broker's policy, as for "
        "any producer; `false` refuses them; a number creates them with that many partitions (0: not partitioned) "
        "through `admin.url`. With `mode=entry` the default is `false`",
    )
    mode: str = option(
        "mode", one_of("message", "entry"), "message", text="`entry` writes rows of entry mode as they are"
    )
    value_schema: str = option(
        "valueSchema",
        one_of("auto", "raw"),
        "auto",
        text="`auto`: a single column `value` of BINARY or STRING is the payload as it is, any other columns are "
        "encoded by the topic's schema, or by the one they make where it has none; `raw`: always the former. Bytes "
        "are written under the schema that the topic has, which they must fit",
    )
    column_style: str = option(
        "columnStyle",
        one_of("pulsar", "kafka"),
        "pulsar",
        text="`kafka`: rows have the columns of Spark's Kafka sink: `key`, `value`, `topic`, `partition`, `headers`",
    )
    schema_type: str = option(
        "schemaType",
        one_of("avro", "json"),
        "avro",
        text="`AVRO` or `JSON`: the schema that columns make for a topic that has none",
    )
    delivery_guarantee: str = option(
        "deliveryGuarantee",
        one_of("at-least-once", "exactly-once"),
        "at-least-once",
        text="`exactly-once`: a stream with a `checkpointLocation` stores every row once, whatever is killed and "
        "repeated; the topics have to be there and to de-duplicate",
    )
    dedup: str | None = option(
        "dedup",
        one_of("none", "position", "batch", "column"),
        None,
        text="exactly-once: the mark of a repeat. `position`: the source position (default of `mode=entry`); `batch`: "
        "micro-batch and content of a row (default of `mode=message`), which a repeated batch has to make again; "
        "`column`: ids of your own in `__sequenceId`, BIGINT, rising per topic-partition and producer "
        "(`__producerName`, or `producerName`)",
    )
    producer_name: str | None = option(
        "producerName",
        str,
        None,
        text="producer name. Default with exactly-once: `interpulse.<id of the query>`, which the checkpoint keeps",
    )
    lane_epoch: int = option(
        "laneEpoch",
        parse_whole,
        0,
        text="exactly-once: another number gives other producer names, which know nothing of what was written before; "
        "to confirm that a source was rebuilt",
    )
    state_path: str | None = option(
        "statePath",
        str,
        None,
        text="exactly-once: directory of the lane files, on the driver. Default: `interpulse` in the checkpoint",
    )
    source_cluster: str | None = option(
        "replicatedFrom", str, None, text="replication: cluster name noted as origin of the entries"
    )
    forward: str = option(
        "forward",
        one_of("none", "origin"),
        "none",
        text="replication: `origin` also copies entries that came from other clusters, as in the middle of a chain; "
        "their origin stays, and none goes back to where it was published",
    )
    target_cluster: str | None = option(
        "targetCluster",
        str,
        None,
        text="replication: name of the cluster written to; entries that came from another one, or are meant for "
        "others, are left out",
    )
    topic_map: TopicMap = option(  # noqa: RUF009 - a dataclass field
        "topicMap",
        parse_topic_map,
        TopicMap(),
        text="exactly-once: under which names topics are written, as `[map]` of the replication job: "
        '`{"rules": [{"from": "shop/orders/(.*)", "to": "store/orders/$1"}], "merge": false}`',
    )
    schema_source_url: str | None = option(
        "schemaSourceUrl",
        parse_service_url,
        None,
        text="service URL of the cluster whose schemas the copied entries use; without it they are written without one",
    )
    schema_source_access: Access = access_options("schemaSource")  # noqa: RUF009 - a dataclass field
    batching_max_messages: int = option(
        "batchingMaxMessages",
        parse_positive,
        1000,
        aliases=("pulsar.producer.batchingMaxMessages",),
        text="maximum number of messages in one Pulsar batch; 1: no batches",
    )
    batching_max_bytes: int = option(
        "batchingMaxBytes",
        parse_positive_size,
        128 * 1024,
        aliases=("pulsar.producer.batchingMaxBytes",),
        text="maximum payload bytes of one Pulsar batch",
    )
    compression_type: str = option(
        "compressionType",
        one_of("none", "lz4", "zlib", "zstd", "snappy"),
        "none",
        aliases=("pulsar.producer.compressionType",),
        text="compression of message batches",
    )
    routing_mode: RoutingMode = option(  # noqa: RUF009 - a dataclass field
        "messageRoutingMode",
        parse_routing_mode,
        "round-robin",
        aliases=("pulsar.producer.messageRoutingMode",),
        text="where rows without key go: `RoundRobinPartition`, all of an Arrow batch to one partition in turn; "
        "`SinglePartition`, all of a task to one partition",
    )
    encryption_keys: tuple[str, ...] = option(
        "encryptionKeys",
        parse_names,
        (),
        aliases=("pulsar.producer.encryptionKeys",),
        text="comma list of the names of public keys: any of their private keys decrypts the messages",
    )
    encryption_public_keys: KeyFiles = option(  # noqa: RUF009 - a dataclass field
        "encryptionPublicKey",
        parse_key_files,
        (),
        text="with `encryptionKeys`: file of the public key, in PEM; or JSON with one for each name, "
        '`{"orders": "/keys/orders.pem"}`. The files have to be on every machine',
    )
    crypto_failure_action: ProducerCryptoFailureAction = option(  # noqa: RUF009 - a dataclass field
        "cryptoFailureAction",
        one_of("fail", "send"),
        "fail",
        aliases=("pulsar.producer.cryptoFailureAction",),
        text="with `encryptionKeys`: messages that cannot be encrypted `fail` the query, or are `send` as they are",
    )
    hashing_scheme: HashingScheme = option(  # noqa: RUF009 - a dataclass field
        "hashingScheme",
        parse_hashing_scheme,
        "murmur3",
        aliases=("pulsar.producer.hashingScheme",),
        text="which hash of the key chooses the partition: `Murmur3_32Hash`, or `JavaStringHash`, which producers of "
        "Pulsar's Java client have by default",
    )
    send_timeout_ms: int = option(
        "sendTimeoutMs",
        parse_duration_ms,
        0,
        aliases=("pulsar.producer.sendTimeoutMs", "sendTimeout"),
        text="longest wait for the receipt of an entry, before the task fails; 0: as long as it takes",
    )
    waits_when_full: bool = option(
        "blockIfQueueFull",
        parse_waiting,
        True,
        aliases=("pulsar.producer.blockIfQueueFull",),
        text="`true` alone is taken: rows wait while `maxPendingBytes` are in flight",
    )
    max_pending_bytes: int = option("maxPendingBytes", parse_positive_size, 64 << 20, text="bytes in flight per task")
    isolate: bool = option(
        "isolate",
        parse_flag,
        False,
        text="exactly-once: a topic that the target refuses is held and retried, the others go on; needs a "
        "source with `topicsFile`, as in the replication job",
    )
    assume_deduplication: bool = option(
        "assumeDeduplication",
        parse_flag,
        False,
        text="exactly-once: you know that the topics written to de-duplicate. Otherwise `admin.url` is asked, or "
        "without one the first entry tells",
    )
    takeover_timeout_ms: int = option(
        "producerTakeoverTimeoutMs",
        parse_whole,
        60_000,
        text="how long to wait while an earlier attempt still holds the producer name",
    )

    @property
    def exactly_once(self) -> bool:
        return self.dedup != "none"


def parse_write_options(mapping: Mapping[str, str], purpose: Purpose = Purpose.WRITE) -> WriteOptions:
    """Parse the options of a write."""
    problems: list[str] = []
    values = read_values(WriteOptions, mapping, purpose, problems)
    guarantee = values.get("delivery_guarantee", "at-least-once")
    own = "position" if values.get("mode") == "entry" else "batch"
    values["dedup"] = values.get("dedup") or (own if guarantee == "exactly-once" else "none")
    _check_creation(values, problems)
    if values["dedup"] != "none" and purpose == Purpose.BATCH_WRITE:
        raise OptionError(
            "exactly-once is for streams, a batch write has no checkpoint to continue from: read with "
            "spark.readStream, and write with .writeStream and .trigger(availableNow=True)"
        )
    _check_guarantee(values, guarantee, problems)
    _check_effect(values, problems)
    return build_options(WriteOptions, values, problems)


def _check_creation(values: dict[str, Any], problems: list[str]) -> None:
    """Set the creation of topics. Entries are copied to topics that exist already, unless the caller asks for more."""
    is_lane = values["dedup"] != "none"
    creation = values.setdefault("create_topics", "false" if values.get("mode") == "entry" or is_lane else "auto")
    if creation != "false" and is_lane:
        problems.append("exactly-once writes to existing topics that de-duplicate: leave createTopics out")
    elif isinstance(creation, int) and not values.get("admin_url"):
        problems.append(f"createTopics={creation} needs admin.url, where the topics are created")


def _check_guarantee(values: Mapping[str, Any], guarantee: str, problems: list[str]) -> None:
    dedup = values["dedup"]
    if guarantee == "exactly-once" and dedup == "none":
        problems.append("deliveryGuarantee=exactly-once excludes dedup=none")
    if dedup == "position" and values.get("mode") != "entry":
        problems.append('dedup=position counts source entries: add .option("mode", "entry"), or leave dedup out')
    if dedup in ("batch", "column") and values.get("mode") == "entry":
        problems.append(f"dedup={dedup} counts messages, and mode=entry writes entries: leave dedup out")
    clusters = {"replicatedFrom": "source_cluster", "targetCluster": "target_cluster"}
    missing = [name for name, key in clusters.items() if not values.get(key)]
    if values.get("forward") == "origin" and missing:
        problems.append("forward=origin only counts with replicatedFrom and targetCluster")
    if dedup == "position" and len(missing) == 1:
        problems.append(
            f'replicatedFrom and targetCluster count together: add .option("{missing[0]}", "<name of that cluster>")'
        )


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


def _check_effect(values: Mapping[str, Any], problems: list[str]) -> None:
    """Refuse options without effect."""
    if values.get("mode") == "entry":
        needed = dict.fromkeys(_ONLY_MESSAGES, "mode=message")
    else:
        needed = dict.fromkeys(_ONLY_ENTRIES, "mode=entry")
    if values["dedup"] == "none":
        needed |= dict.fromkeys(_ONLY_EXACTLY_ONCE, "deliveryGuarantee=exactly-once")
    _refuse_idle(needed, values, problems)
    if values.get("column_style") == "kafka":
        _refuse_idle(dict.fromkeys(("schema_type", "value_schema"), "columnStyle=pulsar"), values, problems)
        if values["dedup"] == "column":
            problems.append("dedup=column reads __sequenceId, which columnStyle=kafka has not: leave one of them out")
    if values.get("send_timeout_ms") and values["dedup"] != "none":
        problems.append("sendTimeoutMs only counts with deliveryGuarantee=at-least-once: lanes wait for every receipt")
    _check_encryption(values, problems)
    if "schema_type" in values and values.get("value_schema") == "raw":
        problems.append("schemaType only counts with valueSchema=auto")
    if "schema_source_access" in values and "schema_source_url" not in values:
        problems.append("access to schemaSource only counts with schemaSourceUrl")


def _refuse_idle(needed: Mapping[str, str], values: Mapping[str, Any], problems: list[str]) -> None:
    problems.extend(
        f"{option_name(WriteOptions, key)} only counts with {condition}"
        for key, condition in needed.items()
        if key in values
    )


def _check_encryption(values: Mapping[str, Any], problems: list[str]) -> None:
    """Refuse encryption where lanes read back what a killed task has stored, and compare it with their rows."""
    named, given = bool(values.get("encryption_keys")), bool(values.get("encryption_public_keys"))
    if named != given:
        problems.append("encryptionKeys and encryptionPublicKey need each other: the names, and the files of the keys")
    if "crypto_failure_action" in values and not named:
        problems.append("cryptoFailureAction only counts with encryptionKeys")
    if named and values["dedup"] != "none":
        problems.append(
            "encryptionKeys only counts with deliveryGuarantee=at-least-once: exactly-once reads back what is stored"
        )
