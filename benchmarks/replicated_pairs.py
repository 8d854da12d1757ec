"""Two clusters of this machine: ``east`` replicates a namespace to ``west``, by our job or by a real replicator."""

import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Self

import psutil

from benchmarks.contenders import Contender, Interpulse, Pulsar, cpu_by_process, cpu_seconds
from benchmarks.raw_frames import encode_batches, encode_sends
from benchmarks.raw_load import Refused, publish
from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import NotFound
from interpulse.model.policies.policy_records import RetentionPolicies
from interpulse.sync import AdminClient

NAMESPACE = "bench/replicated"
TOPIC = f"persistent://{NAMESPACE}/rates"
PACED_TOPIC = f"persistent://{NAMESPACE}/paced"
PARTITIONS = 4
PAYLOAD_BYTES = 100
BATCH_MESSAGES = 100
SECONDS_MAX = 240
POLL_SECONDS = 0.05
STOP_SECONDS_MAX = 60
SKIPPED_SHARE = 0.5  # of a backlog: what was read ahead while the target was paused


def entries_of(count: int) -> list[bytes]:
    """SEND frames for each partition. The topic does not de-duplicate, so every load may number from 0."""
    return [encode_sends(count // PARTITIONS, PAYLOAD_BYTES)] * PARTITIONS


def batches_of(count: int) -> list[bytes]:
    """SEND frames for each partition, of batches of 1 KB messages."""
    return [encode_batches(count // PARTITIONS, BATCH_MESSAGES, 1024)] * PARTITIONS


class Cost(dict[str, float]):
    """Processor seconds by kind of process."""

    def since(self, before: Self) -> "Cost":
        """What was used meanwhile; a process that was not there before counts in full."""
        return Cost({kind: used - before.get(kind, 0) for kind, used in self.items()})

    @property
    def total(self) -> float:
        """Of all kinds."""
        return sum(self.values())

    def per(self, count: float) -> "Cost":
        """The share of one of so many."""
        return Cost({kind: used / count for kind, used in self.items()})

    def __str__(self) -> str:
        return f"{self.total:.3g} ({', '.join(f'{kind} {used:.3g}' for kind, used in self.items())})"


class Moved(NamedTuple):
    """Entries that arrived, in which time, and what they cost."""

    entries: int
    seconds: float
    cost: Cost


class Pair:
    """Both clusters and what copies, from the start of the block to its end."""

    def __init__(self, east: Contender, west: Contender) -> None:
        self.east, self.west = east, west
        self._published = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for broker in (self.east, self.west):
                broker.start()
                stack.callback(broker.stop)
            self._admin = stack.enter_context(AdminClient(self.west.web_url))
            self._replicate()
            self._start_copying(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def move(self, encoded: Sequence[bytes], count: int) -> Moved:
        """Publish entries while ``west`` is paused, and let it go on: what is seen of the second half."""
        begin = self._published + int(count * SKIPPED_SHARE)
        west = psutil.Process(self.west.pid)
        west.suspend()
        try:
            self._publish(encoded, count)
        finally:
            west.resume()
        first, before, started = self._until(begin), self.cost(), time.monotonic()
        self._until(self._published)
        seconds = time.monotonic() - started
        return Moved(self._published - first, seconds, self.cost().since(before))

    def cost(self) -> Cost:
        """Since the start."""
        return Cost({"source broker": cpu_seconds(self.east), "target broker": cpu_seconds(self.west)})

    def _replicate(self) -> None:
        """As an operator enables it."""
        with AdminClient(self.east.web_url) as east, AdminClient(self.west.web_url) as west:
            for admin in (east, west):
                known = admin.clusters.list()
                for name, broker in (("east", self.east), ("west", self.west)):
                    record = ClusterData(service_url=broker.web_url, broker_service_url=broker.service_url)
                    (admin.clusters.update if name in known else admin.clusters.create)(name, record)
                admin.tenants.create("bench", TenantInfo(allowed_clusters=("east", "west")))
                admin.namespaces.create(NAMESPACE)
                admin.namespaces.set_retention(
                    NAMESPACE, RetentionPolicies(time_minutes=-1, size_mb=-1)
                )  # to be counted
            for topic in (TOPIC, PACED_TOPIC):
                east.topics.create_partitioned(topic, PARTITIONS)
            east.namespaces.set_replication_clusters(NAMESPACE, ["east", "west"])

    def _start_copying(self, stack: ExitStack) -> None:
        """A broker that has its own replicator does it already."""

    def _publish(self, encoded: Sequence[bytes], count: int) -> None:
        threads = [
            threading.Thread(
                target=publish,
                args=(self.east.service_url, f"{TOPIC}-partition-{index}", encoded[index], count // PARTITIONS),
            )
            for index in range(PARTITIONS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._published += count

    def _arrived(self) -> int:
        try:
            stats = [self._admin.topics.internal_stats(f"{TOPIC}-partition-{index}") for index in range(PARTITIONS)]
        except NotFound:
            return 0  # not created yet
        return sum(int(body["numberOfEntries"]) for body in stats)

    def _until(self, count: int) -> int:
        """Return when so many have arrived: how many there are."""
        deadline = time.monotonic() + SECONDS_MAX
        while (arrived := self._arrived()) < count:
            if time.monotonic() > deadline:
                raise Refused(f"{arrived} of {self._published} entries arrived in {SECONDS_MAX} s")
            time.sleep(POLL_SECONDS)
        return arrived


class OurPair(Pair):
    """Two of our brokers and the job, which is a process of its own so that its limits can be set."""

    def __init__(
        self, directory: Path, *, program: Path | None = None, limits: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """``program``: the `interpulse` of another environment. ``limits``: of the job, in place of its defaults."""
        self._program = program or Path(sys.executable).with_name("interpulse")
        self._directory = directory
        self._limits = limits
        self._used: dict[psutil.Process, float] = {}
        settings = ["brokerDeleteInactiveTopicsEnabled=false", "replicationJob=external"]
        chosen = [word for each in settings for word in ("--set", each)]
        super().__init__(
            *(
                Interpulse(directory / name, "--cluster-name", name, *chosen, program=program)
                for name in ("east", "west")
            )
        )

    def cost(self) -> Cost:
        cost = super().cost() | dict.fromkeys(("job", "Java", "Python workers"), 0.0)
        for process, used in cpu_by_process(self._job):
            if process.status() != psutil.STATUS_ZOMBIE:
                self._used[process] = used
            used = self._used.get(process, 0.0)  # the clock of one that ended shows a part until its parent asks
            is_java = process.name() == "java"
            cost["job" if process.pid == self._job.pid else "Java" if is_java else "Python workers"] += used
        return Cost(cost)

    def _start_copying(self, stack: ExitStack) -> None:
        config = self._directory / "job.toml"
        config.write_text(
            f"""
            [pipeline]
            name = "bench"
            state = "{self._directory / "job"}"
            as_replicator = true
            [source]
            cluster = "east"
            service_url = "{self.east.service_url}"
            admin_url = "{self.east.web_url}"
            [select]
            from_policies = true
            [limits]
            """
            + "\n".join(f"{name} = {value}" for name, value in self._limits.items())
        )
        log = stack.enter_context((self._directory / "job.log").open("wb"))
        command = [str(self._program), "replicate", "--config", str(config)]
        self._job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        stack.callback(self._end_job)

    def _end_job(self) -> None:
        family = psutil.Process(self._job.pid).children(recursive=True)
        self._job.terminate()
        self._job.wait(STOP_SECONDS_MAX)
        psutil.wait_procs(family, STOP_SECONDS_MAX)


def real_pair(directory: Path) -> Pair:
    """Two real Pulsars and their own replicator."""
    settings = {"brokerDeleteInactiveTopicsEnabled": "false"}
    return Pair(*(Pulsar(directory / name, cluster_name=name, settings=settings) for name in ("east", "west")))
