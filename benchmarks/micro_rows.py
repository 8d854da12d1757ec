"""What a row of the Spark data source costs in Python, from entries in memory to Arrow: processor time per row.

    python -m benchmarks.micro_rows [--rounds 5]

Batches of 100 messages. Without Spark, broker and network: what they cost stands in the comparison.
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


def entries_of(
    payloads: Sequence[bytes], key: str | None = None, properties: Mapping[str, str] | None = None
) -> list[Entry]:
    singles = []
    for number, payload in enumerate(payloads):
        single = pb.SingleMessageMetadata(payload_size=0, sequence_id=number)
        if key is not None:
            single.partition_key = key
        for name, value in (properties or {}).items():
            single.properties.add(key=name, value=value)
        singles.append((single, payload))
    entries = []
    for number in range(BATCHES):
        metadata = pb.MessageMetadata(
            producer_name="p", sequence_id=number, publish_time=1, num_messages_in_batch=len(payloads)
        )
        raw = build_entry(metadata.SerializeToString(), pack_batch(singles))
        entries.append(Entry(Position(5, number), raw, parse_entry(raw)))
    return entries


def columns_for(schema: SchemaInfo | None, options: Mapping[str, str]) -> ReadColumns:
    parsed = parse_read_options({"service.url": "pulsar://x:1", "topic": "t", **options})
    schemas = {} if schema is None else {"persistent://public/default/t": schema}
    return columns_of_query(parsed, schema_of_query(parsed, schemas), schemas)


def measure(name: str, entries: Sequence[Entry], columns: ReadColumns, rounds: int) -> None:
    spent = []
    for _ in range(rounds):
        builder = columns.builder(lambda topic, version: None)
        begun = time.process_time()
        with relaxed_collector():
            for first in range(0, len(entries), 20):
                builder.add(TOPIC, entries[first : first + 20])
                if builder.bytes >= 2 << 20 or builder.rows >= 8192:
                    builder.take()
            builder.take()
        spent.append(time.process_time() - begun)
    print(f"{name:<44} {min(spent) / BATCHES / MESSAGES * 1e6:6.2f} us per row")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    raw = [bytes(1024)] * MESSAGES
    plain = entries_of(raw)
    measure("raw 1 KB, seven columns", plain, columns_for(None, {"valueSchema": "raw"}), rounds)
    measure("raw 1 KB, value alone", plain, columns_for(None, {"includeColumns": "none"}), rounds)
    rich = entries_of(raw, "k", {"a": "b", "c": "d"})
    measure("raw 1 KB, key and two properties", rich, columns_for(None, {"valueSchema": "raw"}), rounds)
    values = [
        {"device": f"d{number}", "number": number, "celsius": 1.5, "ok": True, "note": None, "text": "x" * 60}
        for number in range(MESSAGES)
    ]
    encoded = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, RECORD, value)
        encoded.append(out.getvalue())
    definition = json.dumps(RECORD).encode()
    alone = {"includeColumns": "none"}
    measure(
        "Avro, six fields", entries_of(encoded), columns_for(SchemaInfo(SchemaType.AVRO, definition), alone), rounds
    )
    texts = [json.dumps(value).encode() for value in values]
    measure("JSON, six fields", entries_of(texts), columns_for(SchemaInfo(SchemaType.JSON, definition), alone), rounds)


if __name__ == "__main__":
    main()
