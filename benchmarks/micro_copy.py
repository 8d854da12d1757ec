"""What it costs a task of the replication job to copy entries from broker to broker: processor time of each process.

    python -m benchmarks.micro_copy [--entries 100000] [--rounds 4] [--positions]

Unbatched messages of 100 bytes in four topics, from one broker of ours to another; the task runs in this process,
without Spark. With --positions, every second round collects the positions of the copies, and has a line of its own. The
least of all rounds counts. Keeps nothing.
"""

import argparse
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.contenders import Interpulse, cpu_seconds
from benchmarks.figures import keep_everything
from benchmarks.raw_frames import encode_sends
from benchmarks.raw_load import publish
from interpulse.model.ids import EARLIEST
from interpulse.model.names import TopicName
from interpulse.spark.copying.range_copies import copy_ranges
from interpulse.spark.lanes import StreamTask
from interpulse.spark.offsets import TopicRange
from interpulse.spark.processes.process_client import process_portal, session_for
from interpulse.spark.reading.read_options import ReadOptions, parse_read_options
from interpulse.spark.writing.broker_target import last_position
from interpulse.spark.writing.write_options import WriteOptions, parse_write_options

TOPICS = 4
PAYLOAD_BYTES = 100


def options(source: Interpulse, target: Interpulse, name: str) -> tuple[ReadOptions, WriteOptions]:
    """Both sides of a copy whose lanes have a name of their own."""
    lanes = {"deliveryGuarantee": "exactly-once", "producerName": name, "assumeDeduplication": "true"}
    origin = {"replicatedFrom": "here", "targetCluster": "there", "isolate": "true"}
    reading = parse_read_options({"service.url": source.service_url, "mode": "entry", "topics": "copied"})
    writing = parse_write_options({"service.url": target.service_url, "mode": "entry", **lanes, **origin})
    return reading, writing


def ranges(reading: ReadOptions, topics: list[str]) -> list[TopicRange]:
    """All that the topics hold."""

    async def ends() -> list[TopicRange]:
        session = await session_for(reading.service_url, reading.operation_timeout_ms, reading.access)
        found = [(topic, await last_position(session, TopicName.parse(topic))) for topic in topics]
        return [TopicRange(topic, EARLIEST, end) for topic, end in found]

    return process_portal().call(ends)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--positions", action="store_true")
    given = parser.parse_args()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        brokers = []
        for side in ("here", "there"):
            broker = Interpulse(directory / side, "--set", "brokerDeduplicationEnabled=true")
            broker.start()
            stack.callback(broker.kill)
            keep_everything(broker)
            brokers.append(broker)
        source, target = brokers
        topics = [f"persistent://public/default/copied-{number}" for number in range(TOPICS)]
        frames = encode_sends(given.entries // TOPICS, PAYLOAD_BYTES)
        for topic in topics:
            publish(source.service_url, topic, frames, given.entries // TOPICS)
            publish(target.service_url, topic, b"", 0)  # makes the topic
        todo = ranges(options(source, target, "")[0], topics)

        def copy(name: str, *, position_runs: bool) -> list[float]:
            reading, writing = options(source, target, name)
            before = [time.perf_counter(), time.process_time(), cpu_seconds(source), cpu_seconds(target)]
            reports = copy_ranges(reading, writing, todo, {}, StreamTask(name), {}, position_runs=position_runs)
            after = [time.perf_counter(), time.process_time(), cpu_seconds(source), cpu_seconds(target)]
            copied = sum(report.entries for report in reports)
            if copied != given.entries // TOPICS * TOPICS:
                raise SystemExit(f"{copied} of {given.entries} entries were copied: {reports}")
            if position_runs != any(report.runs for report in reports):
                raise SystemExit(f"positions were not collected as asked: {reports}")
            return [(late - early) / copied * 1e6 for early, late in zip(before, after, strict=True)]

        rounds: dict[bool, list[list[float]]] = {}
        for number in range(given.rounds * (1 + given.positions)):
            is_collecting = given.positions and number % 2 == 1
            rounds.setdefault(is_collecting, []).append(copy(f"lane-{number}", position_runs=is_collecting))
        print("microseconds per entry, the least of each column: elapsed, task, source broker, target broker")
        for is_collecting, measured in rounds.items():
            least = [f"{min(column):.1f}" for column in zip(*measured, strict=True)]
            print(*least, *(["with positions"] if is_collecting else []), sep="  ")


if __name__ == "__main__":
    main()
