"""Where the processor time of a broker goes: its shares per scenario, in percent.

    python -m benchmarks.profile_shares                          all scenarios, about two minutes
    python -m benchmarks.profile_shares --only questions --seconds 10
    python -m benchmarks.profile_shares --commit b82896d         a broker of that commit

Each scenario runs again and again while py-spy samples the stacks of the broker, those of its libraries included. The
sampler needs the right to trace another process: root, or `sysctl kernel.yama.ptrace_scope=0`. Keeps nothing.
"""

import argparse
import itertools
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.contenders import Contender, Interpulse, cpu_seconds
from benchmarks.figures import (
    CONSUMERS,
    MESSAGES,
    PARTITIONS,
    SUBSCRIPTIONS,
    UNACKNOWLEDGED,
    keep_everything,
    keyed_frames,
    raw_frames,
)
from benchmarks.http_load import Request, run_requests
from benchmarks.raw_load import ask_partitions_pipelined, drain, fan_out, look_up_pipelined, publish
from benchmarks.releases import NoRelease, commit_of, program_of
from benchmarks.shared_load import redeliver, share
from benchmarks.shares import count_shares, table
from interpulse.wire import pulsar_api_pb2 as pb

SAMPLES_PER_SECOND = 200
QUESTIONS_AT_ONCE = 10
TOPIC = "persistent://public/default/profiled"

Load = Callable[[Contender, int], int]
"""Puts a load on a broker for the n-th time; the messages or questions of it."""


class NoProfile(Exception):
    """The sampler could not look at the broker; the message is its own."""


def _publish(contender: Contender, turn: int) -> int:
    publish(contender.service_url, f"{TOPIC}-{turn}", raw_frames(), MESSAGES)
    return MESSAGES


def _drain(contender: Contender, turn: int) -> int:
    drain(contender.service_url, TOPIC, MESSAGES)
    return MESSAGES


def _fan_out(contender: Contender, turn: int) -> int:
    fan_out(contender.service_url, TOPIC, SUBSCRIPTIONS, MESSAGES)
    return MESSAGES * SUBSCRIPTIONS


def _redeliver(contender: Contender, turn: int) -> int:
    redeliver(contender.service_url, TOPIC, UNACKNOWLEDGED, 4)
    return 5 * UNACKNOWLEDGED  # with the first delivery


def _share(sub_type: pb.CommandSubscribe.SubType.ValueType) -> Load:
    def load(contender: Contender, turn: int) -> int:
        subscription = f"profiled-{sub_type}-{turn}"
        share(contender.service_url, TOPIC, subscription, sub_type, consumers=CONSUMERS, count=MESSAGES)
        return MESSAGES

    return load


def _ask(ask: Callable[[str, Sequence[str]], float]) -> Load:
    names = [f"{TOPIC}-wide-partition-{number}" for number in range(PARTITIONS)]

    def load(contender: Contender, turn: int) -> int:
        for _ in range(QUESTIONS_AT_ONCE):
            ask(contender.service_url, names)
        return QUESTIONS_AT_ONCE * PARTITIONS

    return load


def _admin_get(contender: Contender, turn: int) -> int:
    get = Request("GET", "/admin/v2/namespaces/public/default/retention")
    run_requests(contender.web_url, [get] * PARTITIONS, connections=8)
    return PARTITIONS


SCENARIOS: Mapping[str, Load] = {
    "questions": _ask(ask_partitions_pipelined),
    "lookups": _ask(look_up_pipelined),
    "raw publish": _publish,
    "raw drain": _drain,
    "fan-out": _fan_out,
    "redelivery": _redeliver,
    "Shared": _share(pb.CommandSubscribe.Shared),
    "Key_Shared": _share(pb.CommandSubscribe.Key_Shared),
    "admin GET": _admin_get,
}


def prepare(contender: Contender) -> None:
    """What the scenarios need: a topic with messages of many keys, and one of many partitions."""
    keep_everything(contender)
    publish(contender.service_url, TOPIC, keyed_frames(), MESSAGES)
    path = f"/admin/v2/{TOPIC.replace('://', '/')}-wide/partitions"
    run_requests(contender.web_url, [Request("PUT", path, str(PARTITIONS).encode())], connections=1)


def profile(contender: Contender, load: Load, seconds: int) -> tuple[Counter[str], float]:
    """Shares in samples, and the broker's processor time in microseconds per message."""
    load(contender, 0)
    with tempfile.NamedTemporaryFile(suffix=".stacks") as stacks:
        command = [str(Path(sys.executable).with_name("py-spy")), "record", "--native", "--format", "raw"]
        command += ["--rate", str(SAMPLES_PER_SECOND), "--duration", str(seconds), "--output", stacks.name]
        before, done = cpu_seconds(contender), 0
        with subprocess.Popen(
            [*command, "--pid", str(contender.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as sampler:
            for turn in itertools.count(1):
                done += load(contender, turn)
                if sampler.poll() is not None:
                    break
            printed = sampler.stderr.read() if sampler.stderr else ""
        if sampler.returncode:
            raise NoProfile(f"py-spy could not sample process {contender.pid}: {printed.strip()}")
        cpu_us = (cpu_seconds(contender) - before) / done * 1e6
        return count_shares(Path(stacks.name).read_text().splitlines()), cpu_us


def main(arguments: Sequence[str]) -> int:
    """Prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile_shares", description="Shares of CPU.")
    parser.add_argument("--only", nargs="+", choices=[*SCENARIOS], default=[*SCENARIOS], metavar="SCENARIO")
    parser.add_argument("--seconds", type=int, default=8, help="of each scenario")
    parser.add_argument("--commit", help="profile the broker of this commit")
    options = parser.parse_args(arguments)
    shares: dict[str, Counter[str]] = {}
    cpu_us: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="interpulse-profile-") as directory:
        try:
            program = program_of(commit_of(options.commit)) if options.commit else None
            contender = Interpulse(Path(directory), program=program)
            contender.start()
            try:
                prepare(contender)
                for name in options.only:
                    print(f"{name} ...", file=sys.stderr, flush=True)
                    shares[name], cpu_us[name] = profile(contender, SCENARIOS[name], options.seconds)
            finally:
                contender.stop()
        except (NoRelease, NoProfile) as missing:
            print(missing, file=sys.stderr)
            return 2
    print(table(shares, cpu_us))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)  # the broker was stopped on the way here
