"""The lane files of a sink: ``<statePath>/lanes/<batch>.json``, one per committed batch, and ``anchors.json``.

The sink's commit writes them on the driver, atomically and durably, and keeps the last hundred. Each file holds all
lanes, so the newest one below a batch id is the state that the batch starts from.

Model: docs/models/lane_settlement.tla.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Hashable, Mapping, Set
from pathlib import Path
from typing import Any, Final, NamedTuple

from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.lanes import UNTOUCHED, LaneState, dump_lanes, load_lanes, topic_of_key
from interpulse.spark.position_files import PositionFiles
from interpulse.spark.state_disk import LOCAL_DISK, StateDisk, write_atomically

_log = logging.getLogger(__name__)

NO_BATCH: Final = -1
HELD_FILE: Final = "held.json"
LAST_COMMIT_FILE: Final = "last_commit.json"
TOPICS_FILE: Final = "topics.json"
_RUN_AHEAD_END_FILE: Final = "run_ahead_end"
_RECALLED_FILE: Final = "recalled.json"
_KEPT = 100
_SUMMARIES_KEPT: Final = 20
_TOPICS_KEPT: Final = 100
_PAUSE_FIRST_MS = 2_000
_PAUSE_MAX_MS = 60_000
_Live = tuple[int, dict[str, tuple[str, int, int, int]]]
"""A batch, and the source position, entries, messages and bytes of each topic."""


class HeldRange(NamedTuple):
    """A topic-partition that is written up to ``after`` only, though the stream's offset may be further."""

    after: Position
    reason: str
    since_ms: int
    attempts: int
    retry_at_ms: int


def load_held(path: Path, disk: StateDisk = LOCAL_DISK) -> dict[str, HeldRange]:
    """Return the held ranges by topic-partition."""
    text = disk.read(path)
    body = {} if text is None else json.loads(text)
    return {topic: HeldRange(Position.parse(item.pop("after")), **item) for topic, item in body.items()}


def load_summaries(path: Path, disk: StateDisk = LOCAL_DISK) -> dict[str, Any]:
    """Return the summary of the newest batch, and "earlier" ones.

    Return nothing if a crash of the machine left the file empty or truncated: it is not synced, because no position
    depends on it.
    """
    try:
        text = disk.read(path)
        body: dict[str, Any] = {} if text is None else json.loads(text)
    except ValueError as error:
        _log.warning("summary of batches cannot be read, the next batch writes it again file=%s error=%s", path, error)
        return {}
    return body


class LaneFiles:
    """The state of all lanes of one sink, below a directory on the driver."""

    def __init__(self, state_path: str, disk: StateDisk = LOCAL_DISK) -> None:
        self._root = Path(state_path)
        self._lanes = self._root / "lanes"
        self._live = self._root / "live"
        self._disk = disk

    @property
    def positions(self) -> PositionFiles:
        """The files with the positions of copies, below the same directory."""
        return PositionFiles(self._root, self._disk)

    def newest(self, below: int | None = None) -> tuple[int, dict[str, LaneState]]:
        """Return the newest batch id (below a bound) and its lanes; ``(NO_BATCH, {})`` when there is none."""
        batch = self.newest_batch(below)
        return batch, {} if batch == NO_BATCH else self._load(self._lanes / f"{batch}.json")

    def newest_batch(self, below: int | None = None) -> int:
        """Return the newest batch id (below a bound); NO_BATCH when there is none."""
        return max((batch for batch in self._batches() if below is None or batch < below), default=NO_BATCH)

    def copied(self) -> dict[str, Position]:
        """Return the source positions up to which lanes of entries have copied their topic-partitions."""
        copied: dict[str, Position] = {}
        for key, state in self.newest()[1].items():
            topic = topic_of_key(key)
            copied[topic] = max(state.copied_upto, copied.get(topic, EARLIEST))
        return copied

    def end_run_ahead(self, now_ms: int) -> None:
        """Let the tasks of the batch in progress end, if they run ahead of their ranges on this machine."""
        self._replace(self._root / _RUN_AHEAD_END_FILE, str(now_ms), durable=False)

    def run_ahead_watch(self) -> dict[Path, Hashable]:
        """Return the files whose change ends a run-ahead, with their versions: the list of topics, and the request."""
        paths = (self._root / TOPICS_FILE, self._root / _RUN_AHEAD_END_FILE)
        return {path: self._disk.version(path) for path in paths}

    def write_live(
        self, batch: int, task: int, copied: Mapping[str, tuple[Position, int, int, int]], *, attempt: int = 0
    ) -> None:
        """Write what a task of the batch in progress has copied: position, entries, messages and bytes by topic.

        Positions may be acknowledged on the source once they are here. ``attempt`` is that of `begin_attempt`, 0 before
        the first one.
        """
        topics = {topic: (str(position), *counts) for topic, (position, *counts) in copied.items()}
        self._replace(self._live / f"{attempt}-{task}.json", json.dumps({"batch": batch, "topics": topics}))

    def live(self) -> dict[str, _Live]:
        """Return by task the batch and the topics of what was written so far in a batch that is not committed."""
        return self._live_of(self._kept()["attempt"], self.newest_batch() + 1)

    def live_positions(self) -> dict[str, Position]:
        """Return the source positions up to which all attempts of the batch in progress have copied."""
        return self._positions_of(self._kept(), self.newest_batch() + 1)[1]

    def has_attempts(self) -> bool:
        """Return True once :meth:`begin_attempt` was called."""
        return self._disk.version(self._root / _RECALLED_FILE) is not None

    def begin_attempt(self) -> tuple[int, dict[str, Position]]:
        """Return the number of the attempt that is planned next, and the positions up to which earlier ones copied.

        They are kept, and reports of earlier attempts count no more: their tasks may live on, and the source must not
        lose what this attempt is planned to read. A batch with a lane file may still be repeated, until Spark has
        marked it; if another batch comes next, it begins behind these positions anyway.
        """
        kept = self._kept()
        batch, positions = self._positions_of(kept, self.newest_batch())
        attempt: int = kept["attempt"] + 1
        topics = {topic: str(position) for topic, position in positions.items()}
        body = {"attempt": attempt, "batch": batch, "topics": topics}
        self._replace(self._root / _RECALLED_FILE, json.dumps(body))
        for name in self._disk.names(self._live):
            self._disk.unlink(self._live / name)
        return attempt, positions

    def _kept(self) -> dict[str, Any]:
        """Return the present attempt, and what was copied before it."""
        text = self._disk.read(self._root / _RECALLED_FILE)
        kept: dict[str, Any] = {"attempt": 0, "batch": NO_BATCH, "topics": {}} if text is None else json.loads(text)
        return kept

    def _live_of(self, attempt: int, first: int) -> dict[str, _Live]:
        """Return by task the batch and the topics of what an attempt wrote, in batches from a number on."""
        names = [name for name in self._disk.names(self._live) if name.startswith(f"{attempt}-")]
        texts = {name: self._disk.read(self._live / name) for name in names}
        bodies = {name: json.loads(text) for name, text in texts.items() if text}
        return {name: (body["batch"], body["topics"]) for name, body in bodies.items() if body["batch"] >= first}

    def _positions_of(self, kept: Mapping[str, Any], first: int) -> tuple[int, dict[str, Position]]:
        """Return the newest batch from a number on of which something is copied, and the positions."""
        reports = [
            (batch, {topic: text for topic, (text, *_) in topics.items()})
            for batch, topics in self._live_of(kept["attempt"], first).values()
        ]
        reports.append((kept["batch"], kept["topics"]))
        newest = max(batch for batch, _ in reports)
        positions: dict[str, Position] = {}
        for batch, topics in reports:
            for topic, text in topics.items() if batch == newest >= first else ():
                positions[topic] = max(Position.parse(text), positions.get(topic, EARLIEST))
        return newest, positions

    def anchors(self) -> dict[str, LaneState]:
        """Return the states of lanes before their first batch, as recorded by the replication job."""
        return self._load(self._root / "anchors.json")

    def write_anchors(self, anchors: Mapping[str, LaneState]) -> None:
        self._replace(self._root / "anchors.json", dump_lanes(anchors))

    def commit(self, batch: int, changed: Mapping[str, LaneState]) -> None:
        """Record the lanes after a batch: the changed ones, and the others as they were.

        A repeated batch may know less of a lane than its first commit, whose positions may be acknowledged by now.
        """
        _, before = self.newest(below=batch)
        lanes = {**before, **self._load(self._lanes / f"{batch}.json")}
        merged = {key: lanes.get(key, UNTOUCHED).joined(state) for key, state in changed.items()}
        self._replace(self._lanes / f"{batch}.json", dump_lanes({**lanes, **merged}))
        for old in sorted(self._batches())[:-_KEPT]:
            self._disk.unlink(self._lanes / f"{old}.json")

    def held(self) -> dict[str, HeldRange]:
        """Return the ranges that could not be written and are to be retried."""
        return load_held(self._root / HELD_FILE, self._disk)

    def hold(self, refused: Mapping[str, tuple[Position, str]], *, released: Collection[str], now_ms: int) -> None:
        """Record the positions and reasons of what a batch was refused, and drop the holds that it released."""
        before = self.held()
        held = {topic: item for topic, item in before.items() if topic not in released}
        for topic, (after, reason) in refused.items():
            earlier = before.get(topic)
            attempts = earlier.attempts + 1 if earlier is not None else 1
            pause = min(_PAUSE_FIRST_MS << min(attempts - 1, 10), _PAUSE_MAX_MS)
            since = earlier.since_ms if earlier is not None else now_ms
            held[topic] = HeldRange(after, reason, since, attempts, now_ms + pause)
        if held != before:
            body = {topic: {**item._asdict(), "after": str(item.after)} for topic, item in held.items()}
            self._replace(self._root / HELD_FILE, json.dumps(body))

    def forget(self) -> None:
        """Delete all lane states.

        Without their checkpoint they are worse than none; the target is read back instead.
        """
        for batch in self._batches():
            self._disk.unlink(self._lanes / f"{batch}.json")
        for name in self._disk.names(self._live):
            self._disk.unlink(self._live / name)
        self._disk.unlink(self._root / _RECALLED_FILE)
        self._disk.unlink(self._root / "anchors.json")
        self._disk.unlink(self._root / HELD_FILE)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write the summary of the last batch, for progress reports and the plan of the next batch.

        It includes a few earlier batches, because the next batch may be over when Spark reports one. With many topics
        their details are left out.
        """
        before = load_summaries(self._root / LAST_COMMIT_FILE, self._disk)
        earlier: dict[str, Any] = before.pop("earlier", {})
        if before:
            topics = before.get("topics", {})
            earlier[str(before["batchId"])] = {**before, "topics": topics if len(topics) <= _TOPICS_KEPT else {}}
        earlier.pop(str(summary["batchId"]), None)
        newest = dict(list(earlier.items())[-_SUMMARIES_KEPT:])
        self._replace(self._root / LAST_COMMIT_FILE, json.dumps({**summary, "earlier": newest}), durable=False)

    def summary_of(self, batch: int) -> dict[str, Any] | None:
        """Return the summary of a batch, if it is among the newest."""
        newest = load_summaries(self._root / LAST_COMMIT_FILE, self._disk)
        earlier: dict[str, dict[str, Any]] = newest.pop("earlier", {})
        return newest if newest.get("batchId") == batch else earlier.get(str(batch))

    def _batches(self) -> list[int]:
        paths = map(Path, self._disk.names(self._lanes))
        return [int(path.stem) for path in paths if path.suffix == ".json" and path.stem.isdigit()]

    def _load(self, path: Path) -> dict[str, LaneState]:
        text = self._disk.read(path)
        return {} if text is None else load_lanes(text)

    def _replace(self, path: Path, text: str, *, durable: bool = True) -> None:
        write_atomically(path, text, durable=durable, disk=self._disk)


class LaneStates(NamedTuple):
    """The lanes after the two newest batches, by batch id, and their states before the first batch.

    A replayed batch finds its own commit among them. Only the task, which receives the batch id from Spark, knows the
    state that applies.
    """

    committed: Mapping[int, Mapping[str, LaneState]]
    anchors: Mapping[str, LaneState]

    def below(self, batch: int) -> Mapping[str, LaneState]:
        """Return the lane states at the start of a batch, by the keys of lanes."""
        below = [number for number in self.committed if number < batch]
        return {**self.anchors, **(self.committed[max(below)] if below else {})}

    def of(self, topics: Set[str]) -> LaneStates:
        """Return the states of some topic-partitions."""
        return LaneStates(
            {batch: _only(lanes, topics) for batch, lanes in self.committed.items()}, _only(self.anchors, topics)
        )


def _only(lanes: Mapping[str, LaneState], topics: Set[str]) -> dict[str, LaneState]:
    return {key: state for key, state in lanes.items() if topic_of_key(key) in topics}


def read_lane_states(files: LaneFiles) -> LaneStates:
    """Read the lane files of a sink."""
    newest, lanes = files.newest()
    if newest == NO_BATCH:
        return LaneStates({}, files.anchors())
    older, lanes_before = files.newest(below=newest)
    return LaneStates({newest: lanes, older: lanes_before}, files.anchors())
