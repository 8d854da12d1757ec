"""Writes ``docs/reference/spark-options.md`` from the options of the Spark data source."""

# ruff: noqa: E501 - the page is prose, wrapped by hand

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path
from typing import Any

from interpulse.model.ids import LATEST
from interpulse.spark.options.option import Purpose, option_slots
from interpulse.spark.reading.read_options import ReadOptions
from interpulse.spark.rows.columns import Layout, read_schema
from interpulse.spark.session import recommended_conf
from interpulse.spark.writing.write_options import WriteOptions

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "spark-options.md"

_HEAD = """# The Spark data source

Written by `tools/generate_spark_reference.py`; do not edit.

Installing the package makes `format("pulsar")` available. `interpulse.spark.register(spark)` registers it by
hand, also under the name `interpulse` for sessions in which a JAR owns the name `pulsar`.

## Options

Keys ignore letter case. A key that is not listed here is refused, and the error names the nearest keys, or the replacement
for a key of Pulsar's Java client or of Spark's Kafka source. Durations are `500`, `500ms`, `30s`, `15m`; sizes
`65536`, `64k`, `64m`, `1g`.

| option | also | for | default | meaning |
| --- | --- | --- | --- | --- |
"""

_OFFSETS = """
An *entry* is the unit that a broker stores: one message, or a batch of them. Limits count entries, because the number of
messages is not known before reading. Reading never creates a topic. `mode=entry` returns entries as they are stored, without
decompressing or splitting them: for copies, backups and replication. In message mode, chunks of a chunked message are an
error.

By default a stream starts at `latest`, and its first micro-batch is always empty: it writes the starting
positions into the checkpoint. The cursor of `predefinedSubscription` follows the progress of the stream; without one the broker may delete
messages before a stream has read them.

`filterPushdown` shortens the ranges to read and leaves rows to Spark, so it never changes a result. It uses comparisons of `__topic`, `__partition`,
`__ledgerId` (with it `__entryId`), `__messageId =` and `IN`, and `__publishTime`, with five more minutes on either side, because
the clocks of producers differ. Spark 4 pushes down filters only for batch reads, and prunes no columns: name the ones you need with
`includeColumns` or `.schema(...)`.

`deliveryGuarantee=exactly-once` writes entries under the producer name of a lane and with sequence ids made of the source
position, so that a target with de-duplication stores each one once; before a topic's first entry the sink checks at `admin.url` that
de-duplication is on. After every retry the sink reads back the target: an entry
that the broker would drop as a repeat without storing it is an error, and never lost silently.

"""

_COLUMNS_HEAD = """## Columns

`includeColumns` takes names, or `default`, `all`, `none`; `.schema(...)` with known names does the same. Only requested columns
are decoded. In message mode the columns of the topic's schema, if it has one, replace `value BINARY`:

| schema of the topic | columns |
| --- | --- |
| none, BYTES, PROTOBUF, PROTOBUF_NATIVE, EXTERNAL | `value` BINARY |
| STRING, BOOLEAN, INT8, INT16, INT32, INT64, FLOAT, DOUBLE | `value` STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE |
| DATE, LOCAL_DATE | `value` DATE |
| TIMESTAMP, INSTANT; LOCAL_DATE_TIME | `value` TIMESTAMP; TIMESTAMP_NTZ |
| TIME; LOCAL_TIME | `value` BIGINT: microseconds; nanoseconds of the day |
| AVRO, JSON | one per field; a union of several types is a struct of `member0`, `member1`.. |
| JSON, fields of `java.util.Date`, `java.sql.Date`, `java.sql.Timestamp`, `OffsetDateTime`, `ZonedDateTime` | TIMESTAMP; other JSON values: [Read JSON payloads](../howto/use-spark.md#read-json-payloads) |
| KEY_VALUE, INLINE or SEPARATED | `key` and `value`, each as its own schema says, a record as a struct |

Avro is read and written by the rules of the Java client:

* A union has the branch of the payload. A row sets one member of the struct; a row with two is refused.
* Two widths of one number, such as `int` and `long`, are one column, and are written as the wider type.
* Messages of earlier schemas are resolved as in Java: by promotion, aliases, defaults of fields and of enumerations, and the
  first branch of a union that matches. Defaults below the top level apply as well.
* Times and decimals keep their value if a later schema has another unit or scale. The Java client uses the number as it is.
* A value that a column cannot hold ends the query with the name of the column: a time before the year 1 or after 9999, a decimal of
  too many digits, text that is not UTF-8. `parseMode=PERMISSIVE` keeps such messages.
* Rows that lack a field write its default.

"""

_CONF_HEAD = """
## Settings of Spark

`interpulse.spark.recommended_conf()` returns these settings. Apply them yourself; only the replication job sets them for you.

| key | value | why |
| --- | --- | --- |
"""

_WHY = {
    "spark.python.unix.domain.socket.enabled": "1.3 to 1.7 times the rate between Java and Python",
    "spark.buffer.size": "an Arrow batch goes from Python to Java in fewer pieces: 2 % less processor time",
    "spark.sql.execution.arrow.maxBytesPerBatch": "smaller Arrow batches into Python sinks are faster",
    "spark.sql.streaming.checkpointFileManagerClass": "on local disks and HDFS without native libraries: a third less "
    "time per micro-batch",
    "spark.sql.streaming.minBatchesToRetain": "the number of lane files that are kept",
    "spark.sql.python.filterPushdown.enabled": "without it Spark refuses a read with `filterPushdown=true`",
    "spark.speculation": "a second attempt would wait for the producer name of the first",
    "spark.task.maxFailures": "tasks may be repeated: lanes make that safe",
}

_JOB = """
A replication job that starts its own session also sets `spark.hadoop.fs.file.impl=org.apache.hadoop.fs.RawLocalFileSystem`: files of a
checkpoint on a local disk then have no checksum files, for which Hadoop would start a process each. `[spark.conf]` can override this.

## The replication job

If policies ask for replication, the broker runs the job by itself (`replicationJob=embedded`). To run it yourself, use
`interpulse replicate --config FILE`, or `spark-submit ... interpulse/spark/__main__.py replicate --config FILE`.
`--dry-run` prints what the job would do: topics, their names on the target, topics to create or hold, and the backlog.

* `lag` shows how far each topic is behind, `why TOPIC` why it is not copied, and `cursors` the cursors on the source;
  `cursors --remove` deletes those that are no longer needed. Run `interpulse replicate lag --config FILE`, or `python -m interpulse.spark lag --config FILE`.
  These commands read the checkpoint and ask both clusters, whether the job runs or not, and need no Spark. They end with 0 if nothing needs
  to be done, with 1 if a topic is behind, would be created, is held or left over, and with 2 if a cluster does not answer.
* On a terminal the job shows one screen: what it waits for, state and speed by cluster, held topics with the reason, and the topics that are furthest behind.
  Elsewhere it prints JSON lines: one when it starts, one per micro-batch, one for each event. It ends within five seconds of SIGTERM.
* The job refuses a `cluster` that is not the cluster's own name, with code 2, because messages would carry a wrong origin and loops would
  go unnoticed. A real Pulsar reports its name only to super users; to others it reports the names of the clusters that it knows, and its own is one of them.
* Without Java or the spark extra the job reports what is missing and ends with code 2.

```toml
[pipeline]
name = "east-west"            # part of producer and cursor names
state = "/var/lib/interpulse/east-west"   # checkpoint and lane files, one directory per target
start = "subscription"        # where a new pipeline begins: or earliest, latest, a time, a table of positions (below)
as_replicator = false         # producer name of Pulsar's own replicator: its schema rules, and the two exclude each other
lane_epoch = 0                # raise it when the source cluster was rebuilt
copy_schemas = true
forward = "none"              # origin: also copy what came to the source from other clusters

[source]
cluster = "east"
service_url = "pulsar://east:6650"
admin_url = "http://east:8080"

[target]                      # may be left out with from_policies: then the cluster records are asked
cluster = "west"
service_url = "pulsar://west:6650"
admin_url = "http://west:8080"

[select]
from_policies = false         # true: what the namespaces' replication clusters say, followed without a restart
namespaces = ["demo/flights"]
topics = []
exclude = "-test$"            # regular expression
include_system_topics = false

[map]                         # under which names topics are written; not with from_policies
rules = [{ from = "demo/(.*)", to = "copy/$1" }]   # the first that matches a whole name counts; others keep their names
merge = false                 # true: several topics may be written to one, each in its own order

[provision]
create = true                 # create topics that the target lacks, in the same shape
namespaces = false            # true: create namespaces that the target lacks
on_mismatch = "hold"          # a topic with another partition count there: hold it; fail: end the job; expand: let the smaller target grow
ensure_deduplication = true   # switch de-duplication on for namespaces of the target that say nothing about it

[limits]
entries_per_batch = 40000
bytes_per_batch = "64m"
tasks = 2                     # tasks per micro-batch
poll_ms = 50                  # how often the source is asked for new entries
discovery_ms = 1000           # how often policies and topics are looked at
trigger_ms = 0                # pause between micro-batches
run_ahead_ms = 60000          # how long tasks go on copying what arrives; 0: they end with what their batch was planned for. Left away: 5000 on a cluster

[metrics]
port = 0                      # where Prometheus finds the figures of the job; 0: nowhere
host = "127.0.0.1"

[subscriptions]
sync = "marked"               # carry acknowledgements of replicated subscriptions; "all": of all durable ones; "none"
include = "^billing-"         # regular expression: only these; left away: all of them
interval_ms = 1000
rebuild_bytes_per_second = "20m"   # how fast the target is read to find out which entry is the copy of which

[heartbeat]
namespace = "demo/flights"    # send small messages to a topic there and time them; left away: none
interval_ms = 10000

[spark]                       # not used under spark-submit
master = "local[16]"          # a task occupies one of these slots while it runs ahead
driver_memory = "1g"
conf = { "spark.local.dir" = "/var/tmp" }
```

`[source]` and `[target]` also take credentials: `token`, preferably `file:///path`, or `auth_plugin` and `auth_params`, with the values of
`pulsar.client.authPluginClassName` and `pulsar.client.authParams`; `certificate_file` and `key_file`. `trust_certs_file` and
`tls_allow_insecure_connection` say which certificates to trust. `listener_name` chooses among the addresses of brokers. For examples, see
[Enable geo-replication](../howto/enable-geo-replication.md#connect-to-a-cluster-that-requires-a-token).

**Arrival.** A task that has copied what its micro-batch was planned for goes on copying what arrives, for `run_ahead_ms` from the start of the task, so that
messages wait for no plan. The batch ends earlier if the job is stopped, if topics, policies or rates change, if a held topic is due, if a message comes to a topic
that the tasks do not follow, or after 200,000 entries. Up to 16 topic-partitions of a target are all followed, of more those with recent messages, if these are at most
256; with more, and for topics with a rate, batches are planned as with `run_ahead_ms = 0`. Between two batches messages wait, usually for a few tenths of a second.
The cursor on the source, and with it `replicationBacklog`, follows every second what has a receipt of the target.
Each task occupies a slot of Spark all the time: if Spark has fewer slots than the tasks of all targets, the job says so in its log and does not run ahead. On a
cluster of several machines only `run_ahead_ms` and the number of entries end a batch, and the cursor follows with the next one. The default is 5000 there; choose less if a
changed policy is to apply sooner. A crash costs no message and duplicates none: the next attempt reads the end of the target. Before you go back to a release without `run_ahead_ms`, stop the job cleanly.

A topic whose partition count or type differs on the two sides, or whose namespace is missing on the target, is *held*: its entries stay on the source,
other topics continue, and the status has the reason and the remedy. The job also holds a topic-partition that the target refuses
during copying (terminated, over quota, another schema), or whose entries the source can no longer deliver. It retries
after 2 s, then less often, down to once a minute. If you move the cursor on the source, the job skips everything before it. If you select a topic
by its name or namespace, its target grows when the source grows. With `from_policies` the source cluster expands the target itself, and
if the source was expanded with `--update-local-only` the topic is held. The job does not forward entries that came from another cluster, and
leaves out entries that `replicate_to` excludes. With `start = "subscription"` the job continues after the acknowledged position
of its durable cursor: `pulsar.repl.<target>` on an Interpulse broker, `interpulse.<name>` on another Pulsar, where a new cursor begins
at the first entry. For a pipeline without a checkpoint, `--from-target` moves the cursors behind the last entry of the target before the start, and
`--skip-until TOPIC=LEDGER:ENTRY` behind the named entry: see [Move topics to another cluster](../howto/take-over-replication.md).

`start` can be a time, `2026-01-31T08:00:00Z` with its zone or milliseconds since 1970: each topic-partition begins with the first message
published at or after it, or behind its last message. It can also be a table of positions and times, for topics or for one partition. The job copies the named
message, and topics that the table leaves out begin at their cursors:

```toml
[pipeline.start]
"demo/flights/departures" = "1042:17"                # ledger:entry
"demo/flights/arrivals" = 2026-01-31T08:00:00Z
"demo/flights/gates" = { 0 = "1043:5", 1 = "earliest" }
```

The job moves its cursors there before it copies, and reports that (`"event": "begins"`). A pipeline with a checkpoint continues from the checkpoint and ignores
`start`. A table that names a topic which is not selected is refused.

With `[provision] namespaces = true` the job creates a missing namespace on the target, with the policies in force on the source that replication
depends on: auto-creation of topics, schema compatibility, and permission to register schemas. If the tenant is missing, its topics are still held.
`on_mismatch = "expand"` expands a target with fewer partitions to the count of the source. No topic ever shrinks, so every other
difference holds the topic. `on_mismatch = "fail"` ends the job with code 1 and the reason.

`forward = "origin"` is for the cluster in the middle of a chain, which passes on entries from other clusters. Entries keep the name of the cluster they were published
on, and are not sent back to it or to the cluster they came from. Use it only if each entry has a single path: in a chain east - middle - west for
the two jobs that read from the middle, and for no other job; do not use it if clusters form a ring or a full mesh.

The job carries the acknowledgements of replicated subscriptions between both clusters, as [Subscriptions](subscriptions.md#on-both-clusters) describes. With
`[subscriptions] sync = "all"` it does so for all durable ones, and creates those of the source on the target. With `[map] merge = true` nothing is carried.
With `[heartbeat]` the job sends small messages to the topic `__interpulse_heartbeat-<name>` of that namespace and reports the time
each took to the target (`"event": "heartbeat"`, `interpulse_spark_heartbeat_seconds`). With `from_policies` the namespace must be
replicated.
"""


def page() -> str:
    """The whole page."""
    options = "".join(_option_row(*row) for row in documented_options(read=ReadOptions, write=WriteOptions))
    conf = "".join(f"| `{key}` | `{value}` | {_WHY[key]} |\n" for key, value in recommended_conf().items())
    return _HEAD + options + _OFFSETS + _COLUMNS_HEAD + _columns() + _CONF_HEAD + conf + _JOB


def _option_row(name: str, aliases: str, applies: str, default: str, text: str) -> str:
    return (
        f"| `{name}` | {aliases} | {applies} | {f'`{default}`' if default else ''} | {text.replace('|', '&#124;')} |\n"
    )


def documented_options(**classes: type[Any]) -> list[tuple[str, str, str, str, str]]:
    """Return name, aliases, queries, default and text of every option, for the reference page.

    The keyword of a class names its queries: ``read=ReadOptions``.
    """
    rows: dict[tuple[str, str], tuple[str, str, str, str, str]] = {}
    for where, cls in classes.items():
        for known in (slot.option for slot in option_slots(cls)):
            applies = {Purpose.STREAM_READ: "stream read", Purpose.BATCH_READ: "batch read"}.get(known.purpose, where)
            place = (known.name, known.text)
            if place in rows:
                applies = f"{rows[place][2]}, {applies}"
            aliases = ", ".join(f"`{alias}`" for alias in known.aliases)
            rows[place] = (known.name, aliases, applies, _default_text(known.default), known.text)
    return list(rows.values())


def _default_text(value: object) -> str:
    if value is MISSING or value is None or value == ():
        return ""
    if value == LATEST:
        return "latest"
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _columns() -> str:
    layouts = {
        "`mode=message`": Layout(),
        "`mode=message` with `columnStyle=kafka`": Layout(style="kafka"),
        "`mode=entry`": Layout("entry"),
    }
    parts = []
    for named, layout in layouts.items():
        default = read_schema(layout, ["default"]).names
        rest = [name for name in read_schema(layout, ["all"]).names if name not in default]
        parts.append(f"* {named}, default: {_named(layout, default)}. On demand: {_named(layout, rest)}.\n")
    return "".join(parts)


def _named(layout: Layout, names: list[str]) -> str:
    types = {item.name: item.dataType.simpleString().upper() for item in read_schema(layout, ["all"]).fields}
    return ", ".join(f"`{name}` {types[name]}" for name in names)


if __name__ == "__main__":
    PAGE.write_text(page())
