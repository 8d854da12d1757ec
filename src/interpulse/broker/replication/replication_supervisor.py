"""Starts and supervises the Spark replication job while policies ask for it.

The job is one child process started by a command line; nothing of Spark is imported here. It runs as long as a
namespace or a topic lists another registered cluster besides the local one. It dies with the broker whatever happens
to either: the child ends when its standard input closes, and everything it started is in its process group.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.ownership.own_access import OwnAccess
from interpulse.clock import Clock, SystemClock
from interpulse.model.errors import PulsarError
from interpulse.model.extras import pip_install
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicyRecord
from interpulse.rules.effective_policies import topic_level
from interpulse.rules.replication import remote_clusters
from interpulse.storage.api import MetadataStore, scan_pages

log = logging.getLogger(__name__)

_BACKOFF_FIRST_S: Final = 1.0
_BACKOFF_MAX_S: Final = 300.0
_STEADY_S: Final = 60.0
_STOP_S: Final = 2.0  # stopping the broker waits for it; killing the job loses nothing
_KILL_S: Final = 2.0
_LAST_LINES_S: Final = 0.5
_RECHECK_S: Final = 30.0
_RECORDS_PER_PAGE: Final = 1000
_LINE_BYTES_MAX: Final = 4 * 1024 * 1024


class JobState:
    """Names of the states of the job."""

    IDLE = "IDLE"  # no policy needs it
    EXTERNAL = "EXTERNAL"  # the job runs elsewhere
    UNAVAILABLE = "UNAVAILABLE"  # a package is missing
    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"


@dataclass(frozen=True, slots=True)
class ReplicationJobView:
    """The state of the job; replaced as a whole, never changed."""

    state: str = JobState.IDLE
    since_ms: int = 0
    remotes: tuple[str, ...] = ()
    last_error: str | None = None
    restarts: int = 0
    retry_at_ms: int | None = None
    """The time of the next attempt to start the job, while it is down."""
    pid: int | None = None
    progress: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The newest progress line of each remote cluster."""


@dataclass(frozen=True, slots=True)
class JobCommand:
    """The command that starts the job, with the facts about the broker and Spark that it needs."""

    config: BrokerConfig = field(repr=False)
    own: OwnAccess
    """The credentials of the job. A certificate is for encrypted addresses of the broker; see `ClusterAddress`."""
    service_url: str
    web_url: str
    program: tuple[str, ...] = (sys.executable, "-m", "interpulse.cli", "replicate")
    arguments: tuple[str, ...] = ()
    """Further arguments of the program, such as the format of its log."""

    @property
    def directory(self) -> Path:
        return Path(self.config.data_dir).resolve() / "replication"

    @property
    def config_path(self) -> Path:
        return self.directory / "job.toml"

    @property
    def _identity(self) -> dict[str, str | None]:
        """The credentials and trusted certificates of the job, as configuration keys."""
        identity: dict[str, str | None] = {}
        own = self.own
        if own.credentials is not None:
            identity = {"auth_plugin": own.credentials.plugin, "auth_params": own.credentials.source}
        encrypted = [self.service_url.startswith("pulsar+ssl:"), self.web_url.startswith("https:")]
        if any(encrypted):
            identity["trust_certs_file"] = own.trust_certs_path
        if all(encrypted):
            identity |= {"certificate_file": own.certificate_path, "key_file": own.key_path}
        return identity

    def config_text(self) -> str:
        """Return the job's configuration. Topics and remote clusters come from the admin API."""
        values = json.dumps  # a JSON string is a TOML basic string
        return "\n".join(
            (
                "[pipeline]",
                'name = "supervised"',
                f"state = {values(str(self.directory))}",
                "as_replicator = true",
                "",
                "[source]",
                f"cluster = {values(self.config.cluster_name)}",
                f"service_url = {values(self.service_url)}",
                f"admin_url = {values(self.web_url)}",
                *(f"{name} = {values(value)}" for name, value in self._identity.items() if value),
                "",
                "[select]",
                "from_policies = true",
                "",
                "[provision]",
                f"create = {values(self.config.create_topic_to_remote_cluster_for_replication)}",
                "",
                "[spark]",
                f"master = {values(self.config.replication_job_spark_master)}",
                f"driver_memory = {values(self.config.replication_job_driver_memory)}",
                "",
            )
        )


def missing_for_replication() -> str | None:
    """Return a sentence that names the missing packages, None if the job can run."""
    java_home = os.environ.get("JAVA_HOME")
    if not (java_home and Path(java_home, "bin", "java").exists()) and shutil.which("java") is None:
        return "replication needs Java 17 or newer: install one (for example openjdk-17-jre-headless) or set JAVA_HOME"
    if any(importlib.util.find_spec(name) is None for name in ("pyspark", "pyarrow")):
        return f"replication needs the spark extra: {pip_install('spark')}"
    return None


class ReplicationSupervisor:
    """Keeps the job running while it is wanted. Start it when the broker serves clients, stop it before it does not.

    ``mode`` is ``embedded`` or ``external`` (never start a job; the operator submits it).
    """

    def __init__(
        self,
        metadata: MetadataStore,
        command: JobCommand,
        *,
        mode: str = "embedded",
        clock: Clock | None = None,
        missing: Callable[[], str | None] = missing_for_replication,
    ) -> None:
        self._metadata = metadata
        self._command = command
        self._mode = mode
        self._clock = clock or SystemClock()
        self._missing = missing
        self._changed = asyncio.Event()
        self._cancel_watches: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        """The reader of the child's output; it ends before `_process` is cleared."""
        self._view = ReplicationJobView(since_ms=self._clock.now_ms())

    @property
    def view(self) -> ReplicationJobView:
        """The current state of the job."""
        return self._view

    async def start(self) -> None:
        """Watch policies and clusters; start the job when one asks for it."""
        for prefix in (keys.POLICIES, keys.TOPIC_POLICIES, keys.CLUSTERS):
            self._cancel_watches.append(self._metadata.watch(prefix, lambda key: self._changed.set()))
        self._task = asyncio.create_task(self._run(), name="replication supervisor")

    async def stop(self) -> None:
        """End the job and wait until nothing of it is left."""
        for cancel in self._cancel_watches:
            cancel()
        self._cancel_watches.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])  # its cancellation must not cancel the caller
            self._task = None
        await self._end_process()

    async def _run(self) -> None:
        pause = _BACKOFF_FIRST_S
        while True:
            self._changed.clear()
            started = self._clock.now_ms()
            try:
                remotes = await self._wanted_remotes()
                self._view = replace(self._view, remotes=remotes)
                if not await self._may_run(remotes):
                    await self._wait_to_try_again(_RECHECK_S)
                    continue
                await self._start_process()
                if not await self._supervise():
                    continue
            except (OSError, ValueError, PulsarError) as failure:  # full disk, no process, unreadable policy
                await self._end_process()
                self._view = replace(self._view, last_error=f"the job cannot be run: {failure}")
            ran_s = (self._clock.now_ms() - started) / 1000
            pause = _BACKOFF_FIRST_S if ran_s >= _STEADY_S else pause
            self._note(JobState.RESTARTING, restarts=self._view.restarts + 1)
            log.warning("replication job ended, starting again pause_s=%.0f error=%s", pause, self._view.last_error)
            await self._wait_to_try_again(pause)
            pause = min(pause * 2, _BACKOFF_MAX_S)

    async def _may_run(self, remotes: tuple[str, ...]) -> bool:
        """Return True if the job should run now; otherwise end it and record the reason."""
        state, problem = JobState.RUNNING, None
        if not remotes:
            state = JobState.IDLE
        elif self._mode == "external":
            state = JobState.EXTERNAL
        else:
            problem = self._missing()
            state = JobState.RUNNING if problem is None else JobState.UNAVAILABLE
        if state == JobState.RUNNING:
            return True
        await self._end_process()
        if state == JobState.IDLE:
            for checkpoint in self._command.directory.glob(
                "*/checkpoint"
            ):  # if enabled again, it starts at new cursors
                shutil.rmtree(checkpoint, ignore_errors=True)
        if (state, problem) != (self._view.state, self._view.last_error):
            self._note(state, last_error=problem, pid=None)
            if problem is not None:
                log.error("replication cannot run reason=%s", problem)
            else:
                log.info("replication job not running state=%s", state)
        return False

    async def _wanted_remotes(self) -> tuple[str, ...]:
        """Return the registered remote clusters that some local namespace or topic is replicated to."""
        registered = set(await self._metadata.children(keys.CLUSTERS))
        wanted: set[str] = set()
        for tenant in await self._metadata.children(keys.POLICIES):
            paths = [
                f"{keys.POLICIES}/{tenant}/{name}"
                for name in await self._metadata.children(f"{keys.POLICIES}/{tenant}")
            ]
            for stored in (await self._metadata.get_many(paths)).values():
                clusters = NamespacePolicies.load(stored.value).replication_clusters
                wanted.update(remote_clusters(self._command.config.cluster_name, clusters))
        async for page in scan_pages(self._metadata, f"{keys.TOPIC_POLICIES}/", limit=_RECORDS_PER_PAGE):
            for key, stored in page:
                if keys.topic_of_topic_policies(key) is None:
                    continue
                own = topic_level(TopicPolicyRecord.load(stored.value)).replication_clusters or ()
                wanted.update(remote_clusters(self._command.config.cluster_name, own))
        return tuple(sorted(wanted & registered))

    async def _wait_to_try_again(self, timeout_s: float) -> None:
        self._view = replace(self._view, retry_at_ms=self._clock.now_ms() + int(timeout_s * 1000))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()

    # ---- The child

    async def _start_process(self) -> None:
        command = self._command
        command.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        command.config_path.touch(mode=0o600)  # it may hold a token
        command.config_path.chmod(0o600)
        command.config_path.write_text(command.config_text(), encoding="utf-8")
        with (command.directory / "job.log").open("ab") as log_file:
            self._process = await asyncio.create_subprocess_exec(
                *command.program,
                "--config",
                str(command.config_path),
                "--supervised",
                *command.arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log_file,
                start_new_session=True,
                limit=_LINE_BYTES_MAX,
            )
        self._reading = asyncio.create_task(self._read_lines(self._process))
        self._note(JobState.RUNNING, pid=self._process.pid)
        log.info("replication job started pid=%d remotes=%s", self._process.pid, ",".join(self._view.remotes))

    async def _supervise(self) -> bool:
        """Read the child's output. Return True when it ends, False after ending it because no policy needs it.

        The job discovers new remote clusters and topics by itself.
        """
        reading = self._reading
        assert reading is not None
        while True:
            waiting = asyncio.create_task(self._changed.wait())
            done, _ = await asyncio.wait({reading, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if reading in done:
                await self._end_process()
                return True
            self._changed.clear()
            remotes = await self._wanted_remotes()
            if not remotes:
                await self._end_process()
                return False
            self._view = replace(self._view, remotes=remotes)

    async def _read_lines(self, process: asyncio.subprocess.Process) -> None:
        """Read progress and errors, one JSON object per line, until the child closes its output."""
        assert process.stdout is not None
        async for raw in process.stdout:
            try:
                line = json.loads(raw)
            except ValueError:
                log.info("replication job output line=%s", raw.decode(errors="replace").rstrip())
                continue
            if isinstance(line, dict):
                self._take_line(line)

    def _take_line(self, line: Mapping[str, Any]) -> None:
        if line.get("event") == "progress":
            self._view = replace(self._view, progress={**self._view.progress, str(line.get("cluster")): line})
        elif line.get("event") == "error":
            self._view = replace(self._view, last_error=str(line.get("error")))
            log.warning("replication job cluster=%s error=%s", line.get("cluster"), line.get("error"))
        else:
            log.info("replication job output line=%s", json.dumps(line))

    async def _end_process(self) -> None:
        """Ask the process to end, then kill it. No process of its group survives."""
        process = self._process  # stays set until it has ended: after a cancellation `stop` finishes
        if process is None:
            return
        try:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
                await _exited(process, _STOP_S)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        await self._close_pipes(process)
        await _exited(process, _KILL_S)
        self._process = self._reading = None
        if process.returncode not in (0, None, -signal.SIGTERM):
            ended = f"the job ended with code {process.returncode}, see {self._command.directory / 'job.log'}"
            self._view = replace(self._view, last_error=self._view.last_error or ended)
        self._view = replace(self._view, pid=None)
        log.info("replication job stopped code=%s", process.returncode)

    async def _close_pipes(self, process: asyncio.subprocess.Process) -> None:
        """Read the last output of an ended child, and close its pipes.

        A process in another session may still hold the pipes. asyncio waits for them, and the loop may end right after
        this.
        """
        assert self._reading is not None
        assert process.stdin is not None
        await asyncio.wait({self._reading}, timeout=_LAST_LINES_S)
        process._transport.close()  # type: ignore[attr-defined]  # no other call closes the end of an output
        await asyncio.wait({self._reading}, timeout=_LAST_LINES_S)
        self._reading.cancel()
        with contextlib.suppress(OSError):
            await process.stdin.wait_closed()

    def _note(self, state: str, **values: Any) -> None:
        if state == JobState.RUNNING:
            values.setdefault("last_error", None)
        self._view = replace(self._view, state=state, since_ms=self._clock.now_ms(), **values)


async def _exited(process: asyncio.subprocess.Process, timeout_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await process.wait()


def records_without_job(view: ReplicationJobView, topics: Sequence[str]) -> list[dict[str, Any]]:
    """Return the status records that explain why the job is down; none if it runs, here or at another broker."""
    if view.state not in (JobState.UNAVAILABLE, JobState.RESTARTING):
        return []
    again = f"the job starts again by itself; last error: {view.last_error}"
    remedy = view.last_error if view.state == JobState.UNAVAILABLE else again
    return [
        {
            "topic": topic,
            "cluster": remote,
            "state": "DISCONNECTED",
            "since": view.since_ms,
            "reason": f"the replication job is {view.state}",
            "remedy": remedy,
            "nextRetryAt": view.retry_at_ms,
            "lagEntries": None,
            "lagSeconds": None,
        }
        for topic in topics
        for remote in view.remotes
    ]
