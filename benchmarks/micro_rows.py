"""What a row of the Spark data source costs in Python, from entries in memory to Arrow: processor time per row.

    python -m benchmarks.micro_rows [--rounds 5]

Batches of 100 messages where nothing else is said. Without Spark, broker and network: what they cost stands in the
comparison.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import fastavro

from interpulse.client.consuming.entry_reader import Entry
from interpulse.model.ids import Position
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.spark.processes.process_client import relaxed_collector
from interpulse.spark.reading.read_columns import ReadColumns, columns_of_query, schema_of_query
from interpulse.spark.reading.read_options import parse_read_options
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_batch
from interpulse.wire.entries import build_entry, parse_entry

TOPIC: Final = "persistent://public/default/t-partition-0"
BATCHES: Final = 300
MESSAGES: Final = 100
KEY: Final = "device-0001"
PROPERTIES: Final = {"region": "eu-west-1", "kind": "reading", "trace": "0123456789abcdef"}
NO_PROPERTIES: Final[Mapping[str, str]] = {}
RECORD: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "device", "type": "string"},
        {"name": "number", "type": "long"},
        {"name": "celsius", "type": "double"},
        {"name": "ok", "type": "boolean"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "text", "type": "string"},
    ],
}

OLDER: Final = SchemaInfo(SchemaType.AVRO, json.dumps(RECORD).encode())
_ADDED: Final = {"name": "added", "type": ["null", "long"], "default": None}
NEWER: Final = SchemaInfo(SchemaType.AVRO, json.dumps({**RECORD, "fields": [*RECORD["fields"], _ADDED]}).encode())
VERSIONS: Final = {b"old": OLDER, b"new": NEWER}


def entries_of(
    payloads: Sequence[bytes],
    key: str | None = None,
    properties: Mapping[str, str] = NO_PROPERTIES,
    version: bytes | None = None,
) -> list[Entry]:
    """Return entries with a batch of these payloads each."""
    listed = [pb.KeyValue(key=name, value=value) for name, value in properties.items()]
    singles = [
        (pb.SingleMessageMetadata(payload_size=0, sequence_id=number, partition_key=key, properties=listed), payload)
        for number, payload in enumerate(payloads)
    ]
    content = pack_batch(singles)
    fields = {"num_messages_in_batch": len(payloads), "schema_version": version}
    return [entry_of(number, content, **fields) for number in range(BATCHES)]


def unbatched(payload: bytes, key: str, properties: Mapping[str, str]) -> list[Entry]:
    """Return entries with this message each."""
    listed = [pb.KeyValue(key=name, value=value) for name, value in properties.items()]
    return [entry_of(number, payload, partition_key=key, properties=listed) for number in range(10 * BATCHES)]


def entry_of(number: int, payload: bytes, **fields: Any) -> Entry:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=number, publish_time=1, **fields)
    raw = build_entry(metadata.SerializeToString(), payload)
    return Entry(Position(5, number), raw, parse_entry(raw))


def columns_for(schema: SchemaInfo | None, options: Mapping[str, str]) -> ReadColumns:
    parsed = parse_read_options({"service.url": "pulsar://x:1", "topic": "t", **options})
    schemas = {} if schema is None else {"persistent://public/default/t": schema}
    return columns_of_query(parsed, schema_of_query(parsed, schemas), schemas)


def measure(name: str, entries: Sequence[Entry], columns: ReadColumns, rounds: int) -> None:
    spent = []
    for _ in range(rounds):
        builder = columns.builder(lambda topic, version: VERSIONS.get(version))
        rows = 0
        begun = time.process_time()
        with relaxed_collector():
            for first in range(0, len(entries), 20):
                builder.add(TOPIC, entries[first : first + 20])
                if builder.bytes >= 2 << 20 or builder.rows >= 8192:
                    rows += builder.take().num_rows
            rows += builder.take().num_rows
        spent.append((time.process_time() - begun) / rows)
    print(f"{name:<48} {min(spent) * 1e6:6.2f} us per row", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    raw = [bytes(1024)] * MESSAGES
    plain = entries_of(raw)
    measure("raw 1 KB, seven columns", plain, columns_for(None, {"valueSchema": "raw"}), rounds)
    measure("raw 1 KB, value alone", plain, columns_for(None, {"includeColumns": "none"}), rounds)
    keyed = entries_of([bytes(100)] * MESSAGES, KEY, PROPERTIES)
    few = entries_of([bytes(100)] * 3, KEY, PROPERTIES)
    alone = unbatched(bytes(100), KEY, PROPERTIES)
    for included in ("none", "__key", "__eventTime", "__messageProperties", "__messageId", "default", "all"):
        columns = columns_for(None, {"valueSchema": "raw", "includeColumns": included})
        measure(f"100 B, key, 3 properties: {included}", keyed, columns, rounds)
        if included in ("none", "default", "all"):
            measure(f"the same in batches of three: {included}", few, columns, rounds)
            measure(f"the same without batches: {included}", alone, columns, rounds)
    values = [
        {"device": f"d{number}", "number": number, "celsius": 1.5, "ok": True, "note": None, "text": "x" * 60}
        for number in range(MESSAGES)
    ]
    encoded = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, RECORD, value)
        encoded.append(out.getvalue())
    value_alone = {"includeColumns": "none"}
    measure("Avro, six fields", entries_of(encoded), columns_for(OLDER, value_alone), rounds)
    newer, old = columns_for(NEWER, value_alone), entries_of(encoded, version=b"old")
    new = entries_of([payload + b"\0" for payload in encoded], version=b"new")
    measure("Avro of an older version, a field added", old, newer, rounds)
    in_turns = [entry for pair in zip(old, new, strict=True) for entry in pair]
    measure("Avro of two versions in turns", in_turns, newer, rounds)
    texts = [json.dumps(value).encode() for value in values]
    measure(
        "JSON, six fields",
        entries_of(texts),
        columns_for(SchemaInfo(SchemaType.JSON, OLDER.definition), value_alone),
        rounds,
    )


if __name__ == "__main__":
    main()
