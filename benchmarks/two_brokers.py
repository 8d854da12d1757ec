"""Two independent brokers of ours on two cores, beside one of them and beside a real Pulsar's one process.

    python -m benchmarks.two_brokers [--real] [--rounds 4]

Two generators publish at once, each a process of its own on a topic of its own: to one broker, to two brokers of which
each is held to one core, and to a real Pulsar on all cores. The generators share the cores with the brokers. Best of
all rounds, in turns: messages in a second of both together, and the brokers' processor time per message. Keeps nothing.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import psutil

from benchmarks.contenders import Contender, Interpulse, Pulsar, cpu_seconds
from benchmarks.figures import MESSAGES, Sample, keep_everything, raw_frames
from benchmarks.raw_load import Refused, publish

GENERATORS = 2
TOPIC = "persistent://public/default/two"


def publish_at_once(service_urls: Sequence[str], turn: int) -> float:
    """Every generator publishes to the broker of its address; messages in a second of all together."""
    command = [sys.executable, "-m", "benchmarks.two_brokers", "--generate"]
    with ExitStack() as stack:
        generators = [
            stack.enter_context(
                subprocess.Popen(
                    [*command, url, f"{TOPIC}-{turn}-{number}"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number, url in enumerate(service_urls)
        ]
        for generator in generators:
            _line_of(generator)  # its frames are encoded
        for generator in generators:
            print("go", file=generator.stdin, flush=True)
        seconds = [float(_line_of(generator)) for generator in generators]
    return MESSAGES * len(service_urls) / max(seconds)


def generate(service_url: str, topic: str) -> None:
    """One generator: says that it is ready, waits for a line, publishes, and says how many seconds it took."""
    frames = raw_frames()
    print("ready", flush=True)
    sys.stdin.readline()
    print(publish(service_url, topic, frames, MESSAGES), flush=True)


def measure(brokers: Sequence[Contender], turn: int) -> Sample:
    """Both generators on these brokers, one or two of them."""
    urls = [brokers[number % len(brokers)].service_url for number in range(GENERATORS)]
    before = sum(map(cpu_seconds, brokers))
    rate = publish_at_once(urls, turn)
    return Sample(rate, (sum(map(cpu_seconds, brokers)) - before) / (MESSAGES * GENERATORS) * 1e6)


def compare(setups: Mapping[str, Sequence[Contender]], rounds: int) -> None:
    """Prints the table."""
    samples: dict[str, list[Sample]] = {title: [] for title in setups}
    with ExitStack() as stack:
        for brokers in setups.values():
            for core, broker in enumerate(brokers):
                broker.start()
                stack.callback(broker.stop)
                keep_everything(broker)
                if len(brokers) > 1:
                    _hold_to_core(broker.pid, core)
        for turn in range(rounds):
            for title, brokers in setups.items():
                samples[title].append(measure(brokers, turn))
    print(
        "| two generators publish 100 B, durable, not batched | messages/s | broker CPU, us each |\n| --- | --- | --- |"
    )
    for title, taken in samples.items():
        best = max(sample.value for sample in taken), min(sample.cpu_us or 0 for sample in taken)
        print(f"| {title} | {best[0]:,.0f} | {best[1]:.2f} |")


def main(arguments: Sequence[str]) -> None:
    """Runs what the arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.two_brokers", description="Two brokers on two cores.")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--real", action="store_true", help="measure a real Pulsar, too")
    parser.add_argument("--generate", nargs=2, metavar=("URL", "TOPIC"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.generate:
        generate(*options.generate)
        return
    with tempfile.TemporaryDirectory(prefix="interpulse-two-") as scratch:
        one, first, second = (Interpulse(Path(scratch) / name) for name in ("one", "first", "second"))
        setups: dict[str, Sequence[Contender]] = {"one broker": [one], "two brokers, a core each": [first, second]}
        if options.real:
            setups["real Pulsar, one process on all cores"] = [Pulsar(Path(scratch) / "real")]
        compare(setups, options.rounds)


def _hold_to_core(pid: int, core: int) -> None:
    """Holds all threads of a process to one core."""
    process = psutil.Process(pid)
    cores = process.cpu_affinity()
    for thread in process.threads():
        os.sched_setaffinity(thread.id, {cores[core % len(cores)]})


def _line_of(generator: "subprocess.Popen[str]") -> str:
    assert generator.stdout is not None, "it is a pipe"
    line = generator.stdout.readline()
    if not line:
        raise Refused(f"a generator ended with {generator.wait()}")
    return line


if __name__ == "__main__":
    main(sys.argv[1:])
