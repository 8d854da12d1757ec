"""Writes ``docs/reference/spark-options.md`` from the options of the Spark data source."""

# ruff: noqa: E501 - the page is prose, wrapped by hand

from __future__ import annotations

from pathlib import Path

from interpulse.spark.options.option import documented_options
from interpulse.spark.reading.read_options import ReadOptions
from interpulse.spark.rows.columns import Layout, read_schema
from interpulse.spark.session import recommended_conf
from interpulse.spark.writing.write_options import WriteOptions

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "spark-options.md"

_HEAD = """# The Spark data source

Written by `tools/generate_spark_reference.py`; do not edit.

`format("pulsar")` is there as soon as the package is installed; `interpulse.spark.register(spark)` registers it by
hand, also under the name `interpulse` for sessions in which a JAR owns the name `pulsar`.

## Options

Keys are found in any letter case. A key that is not listed here is refused, with the nearest ones named, or with what
to give instead where it is one of Pulsar's Java client or of Spark's Kafka source. Durations are `500`, `500ms`, `30s`, `15m`; sizes
`65536`, `64k`, `64m`, `1g`.

| option | also | for | default | meaning |
| --- | --- | --- | --- | --- |
"""

_OFFSETS = """
An *entry* is what a broker stores at a time: one message, or a batch of them. Limits count entries, because the number of
messages is not known before reading. Reading never creates a topic. `mode=entry` gives entries as they are stored, without
decompressing or splitting them: for copies, backups and replication. A piece of a chunked message is an error in message
mode.

A stream starts at `latest` unless told otherwise, and its first micro-batch is always empty: it writes the starting
positions into the checkpoint. The cursor of `predefinedSubscription` follows what is done; without one the broker may delete
messages before a stream has read them.

`filterPushdown` makes ranges shorter and leaves rows to Spark, so it never changes a result: comparisons of `__topic`, `__partition`,
`__ledgerId` (with it `__entryId`), `__messageId =` and `IN`, and `__publishTime`, where five minutes more are read on either side, since
the clocks of producers differ. Spark 4 pushes filters of batch reads alone, and prunes no columns: name those you need with
`includeColumns` or `.schema(...)`.

`deliveryGuarantee=exactly-once` writes entries under a producer name of the lane's and with sequence ids made of the source
position, so that a target that de-duplicates stores each one once; whether it does is asked at `admin.url` before a topic's
first entry. After every retry the target itself is read back: an entry
that the broker would drop as a repeat without holding it is an error, never lost in silence.

"""

_COLUMNS_HEAD = """## Columns

`includeColumns` takes names, or `default`, `all`, `none`; `.schema(...)` with known names does the same. Only what is asked
for is decoded. In message mode the columns of the topic's schema stand in place of `value BINARY` where it has one:

| schema of the topic | columns |
| --- | --- |
| none, BYTES, PROTOBUF, PROTOBUF_NATIVE, EXTERNAL | `value` BINARY |
| STRING, BOOLEAN, INT8, INT16, INT32, INT64, FLOAT, DOUBLE | `value` STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE |
| DATE, LOCAL_DATE | `value` DATE |
| TIMESTAMP, INSTANT; LOCAL_DATE_TIME | `value` TIMESTAMP; TIMESTAMP_NTZ |
| TIME; LOCAL_TIME | `value` BIGINT: microseconds; nanoseconds of the day |
| AVRO, JSON | one per field; a union of several types is a struct of `member0`, `member1`.. |
| JSON, fields of `java.util.Date`, `java.sql.Date`, `java.sql.Timestamp`, `OffsetDateTime`, `ZonedDateTime` | TIMESTAMP; what else JSON may hold: [use-spark](../howto/use-spark.md#read-json-payloads) |
| KEY_VALUE, INLINE or SEPARATED | `key` and `value`, each as its own schema says, a record as a struct |

Avro is read and written by the rules of Java's client:

* The branch of a union is that of the payload. A row sets one member of the struct; with two set it is refused.
* Two widths of one number, such as `int` and `long`, are one column, and are written as the wider.
* Messages of earlier schemas are resolved as Java does it: by promotion, aliases, defaults of fields and of enumerations, and the
  first branch of a union that matches. Defaults below the top level count as well.
* Times and decimals keep their value where a later schema has another unit or scale. Java's client takes the number as it is.
* A value that a column cannot hold ends the query with the name of the column: a time before the year 1 or after 9999, a decimal of
  too many digits, bytes that are no UTF-8 in a text. `parseMode=PERMISSIVE` keeps such messages.
* Rows that lack a field write its default.

"""

_CONF_HEAD = """
## Settings of Spark

`interpulse.spark.recommended_conf()` gives these; nothing sets them for you, except in the replication job.

| key | value | why |
| --- | --- | --- |
"""

_WHY = {
    "spark.python.unix.domain.socket.enabled": "1.3 to 1.7 times the rate between Java and Python",
    "spark.buffer.size": "an Arrow batch goes from Python to Java in fewer pieces: 2 % less processor time",
    "spark.sql.execution.arrow.maxBytesPerBatch": "smaller Arrow batches into Python sinks are faster",
    "spark.sql.streaming.checkpointFileManagerClass": "on local disks and HDFS without native libraries: a third less "
    "time per micro-batch",
    "spark.sql.streaming.minBatchesToRetain": "as many as lane files are kept",
    "spark.sql.python.filterPushdown.enabled": "without it a read with `filterPushdown=true` is refused by Spark",
    "spark.speculation": "a second attempt beside a living one would wait for its producer name",
    "spark.task.maxFailures": "tasks may be repeated: lanes make that safe",
}

_JOB = """
A replication job that starts its own session also sets `spark.hadoop.fs.file.impl=org.apache.hadoop.fs.RawLocalFileSystem`: files of a
checkpoint on a local disk have no second file with a checksum then, for which Hadoop starts a process each. `[spark.conf]` may say otherwise.

## The replication job

A broker whose policies ask for replication runs it by itself (`replicationJob=embedded`). By hand:
`interpulse replicate --config FILE`, or `spark-submit ... interpulse/spark/__main__.py replicate --config FILE`;
`--dry-run` prints what would be done: topics, the names they get, what would be created or held, and what waits. Beside it
`lag` shows how far each topic is behind, `why TOPIC` why one is not copied, and `cursors` the cursors on the source, of which
`--remove` deletes those that are needed no more: `interpulse replicate lag --config FILE`, or `python -m interpulse.spark lag --config FILE`.
They ask the checkpoint and both clusters, whether the job runs or not, and need no Spark. All of them end with 0 when there is nothing
to do, with 1 when something is behind, would be created, is held or left over, with 2 when a cluster gives no answer. On a terminal
the job shows one screen: what it waits for, state and speed by cluster, what is held and why, what is most behind. Elsewhere it prints
JSON lines: one when it starts, one per micro-batch, one for each thing that happens. It ends within five seconds of SIGTERM.
A `cluster` that the cluster there does not call itself by is refused with code 2: messages would carry a wrong origin, and loops go
unnoticed. A real Pulsar tells its name to super-users alone; to others the names of the clusters it knows, and it is one of them.
Without Java or the spark extra it says so and ends with code 2.

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

[metrics]
port = 0                      # where Prometheus finds the figures of the job; 0: nowhere
host = "127.0.0.1"

[subscriptions]
sync = false                  # true: carry the subscriptions of the source to the target
include = "^billing-"         # regular expression: only these; left away: all that last
interval_ms = 60000

[heartbeat]
namespace = "demo/flights"    # send small messages to a topic there and time them; left away: none
interval_ms = 10000

[spark]                       # not used under spark-submit
master = "local[2]"
driver_memory = "1g"
conf = { "spark.local.dir" = "/var/tmp" }
```

`[source]` and `[target]` also take who the job is there: `token`, best `file:///path`, or `auth_plugin` and `auth_params`, which are those of
`pulsar.client.authPluginClassName` and `pulsar.client.authParams`; `certificate_file` and `key_file`; and what it trusts: `trust_certs_file`,
`tls_allow_insecure_connection`. `listener_name` chooses among the addresses of brokers. Examples are in
[enable-geo-replication](../howto/enable-geo-replication.md#connect-to-a-cluster-that-requires-a-token).

A topic whose shape differs on the two sides, or whose namespace is missing there, is *held*: its entries stay on the source,
the rest goes on, and the status says why and what would end it. The same holds for a topic-partition that the target refuses
while it is copied (terminated, over quota, another schema), or whose entries the source cannot give out any more: it is tried
again after 2 s, at last once a minute. Moving its cursor on the source gives up what lies before. The target of a topic that
is selected by its name or namespace grows when the source grows; with `from_policies` the source cluster does that itself, and
where it was told not to (`--update-local-only`) the topic is held. Nothing is forwarded that came from another cluster, and
what `replicate_to` excludes is left out. With `start = "subscription"` the job continues after what its durable cursor has
acknowledged: `pulsar.repl.<target>` on an Interpulse broker, `interpulse.<name>` on another Pulsar, where a new cursor begins
at the first entry. `--from-target` moves the cursors behind what the target holds before a pipeline without a checkpoint starts, and
`--skip-until TOPIC=LEDGER:ENTRY` behind an entry that is named: see [take-over-replication](../howto/take-over-replication.md).

`start` may be a time, `2026-01-31T08:00:00Z` with its zone or milliseconds since 1970: each topic-partition begins with the first message
published at or after it, or behind its last one. Or it is a table of positions and times, for topics or for one partition; the message
named is copied, and the topics that the table leaves out begin at their cursors:

```toml
[pipeline.start]
"demo/flights/departures" = "1042:17"                # ledger:entry
"demo/flights/arrivals" = 2026-01-31T08:00:00Z
"demo/flights/gates" = { 0 = "1043:5", 1 = "earliest" }
```

The job puts its cursors there before it copies, and tells so (`"event": "begins"`); a pipeline with a checkpoint goes on from that, whatever
`start` says. A table that names a topic which is not selected is refused.

With `[provision] namespaces = true` a namespace that is missing there is created with the policies in force on the source that replication
depends on: auto-creation of topics, schema compatibility, and who may register schemas. A missing tenant holds its topics all the same.
`on_mismatch = "expand"` lets a target with fewer partitions grow to the count of the source; none ever shrinks, so every other
difference holds the topic. `on_mismatch = "fail"` ends the job with code 1 and the reason.

`forward = "origin"` is for the cluster in the middle of a chain, which passes on what came to it: entries keep the cluster they were published
on, and go neither there nor back to where they came from. Set it where an entry has one way only: in a chain east - middle - west for
the two jobs that read from the middle, and for none of the others; where clusters are joined in a ring or a full mesh, for none.

With `[subscriptions] sync = true` the subscriptions of the source are made on the target, and follow forward to the last copy of what was
acknowledged, for consumers that move there: at least once, without what was acknowledged one by one beyond a gap, and not while a
consumer is connected there. It is made for one direction: messages that producers of the target published before that copy are passed
over. With `[heartbeat]` the job sends small messages to the topic `__interpulse_heartbeat-<name>` of that namespace and tells how long
each took to the target (`"event": "heartbeat"`, `interpulse_spark_heartbeat_seconds`); with `from_policies` the namespace has to be a
replicated one.
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
