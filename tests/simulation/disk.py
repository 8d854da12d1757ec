"""A disk in memory that fails, fills up, rots and loses power where a test wants it."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from interpulse.storage.segments.files import AppendFile, ReadFile, Room

_UNBOUNDED = 1 << 40


class PowerLost(OSError):
    """The machine lost its power while this step was under way."""


@dataclass
class _Content:
    written: bytearray = field(default_factory=bytearray)
    synced: int = 0
    forsaken: bool = False  # a sync failed: the system takes the rest for written, and no later sync writes it


@dataclass
class SimulatedDisk:
    """`Files` over dictionaries. Every operation that can fail on a real disk passes `step` first.

    ``fail_at`` is the number of the step that fails (counted from 0), with ``error_number``; with ``for_good`` every
    later one fails too. ``capacity`` bounds the bytes of all files together.
    """

    fail_at: int | None = None
    error_number: int = errno.EIO
    for_good: bool = False
    capacity: int | None = None
    open_error: OSError | None = None  # of every file opened for reading from now on
    reads_failing: int = 0  # the number of reads from now on that fail
    fails_next: str = ""  # the kind of step whose next one fails
    steps_left: int | None = None  # until the power is lost in the middle of a step; see `die_after`
    torn: Callable[[int], int] = lambda size: size // 2  # the bytes that reach the file of a write that fails
    steps: list[str] = field(default_factory=list)
    names_now: dict[Path, _Content] = field(default_factory=dict)
    names_synced: dict[Path, _Content] = field(default_factory=dict)

    def step(self, what: str) -> None:
        number = len(self.steps)
        self.steps.append(what)
        if self.steps_left is not None:
            if self.steps_left == 0:
                raise PowerLost(errno.EIO, f"simulated loss of power in step {number} ({what})")
            self.steps_left -= 1
        if what == self.fails_next:
            self.fails_next = ""
            raise OSError(self.error_number, f"simulated failure of step {number} ({what})")
        if self.fail_at is not None and (number == self.fail_at or (self.for_good and number > self.fail_at)):
            raise OSError(self.error_number, f"simulated failure of step {number} ({what})")

    def die_after(self, steps: int, chance: random.Random) -> None:
        """Complete this number of steps, and break every later one off in its middle with `PowerLost`."""
        self.steps_left = steps
        self.torn = lambda size: chance.randint(0, size)

    def count(self, what: str) -> int:
        return self.steps.count(what)

    @property
    def used(self) -> int:
        return sum(len(each.written) for each in self.names_now.values())

    def content(self, path: Path) -> bytearray:
        return self.names_now[path].written

    def after_power_loss(self, chance: random.Random) -> SimulatedDisk:
        """What may be found afterwards: all that was synced, and of the rest anything."""
        survivor = SimulatedDisk()
        for path in sorted({*self.names_now, *self.names_synced}):  # in one order, so that a seed means one outcome
            now, synced = self.names_now.get(path), self.names_synced.get(path)
            kept = synced if now is synced else chance.choice([now, synced])
            if kept is not None:
                content = _Content(_survived(kept, chance))
                content.synced = len(content.written)
                survivor.names_now[path] = survivor.names_synced[path] = content
        return survivor

    def healthy(self) -> SimulatedDisk:
        """The same files, seen by the next process after this one was killed."""
        return SimulatedDisk(names_now=self.names_now, names_synced=self.names_synced)

    def flip_bit(self, chance: random.Random) -> None:
        """Change one bit of what was synced, if there is anything."""
        content = [each for path, each in sorted(self.names_now.items()) if each.synced]
        if content:
            chosen = chance.choice(content)
            chosen.written[chance.randrange(chosen.synced)] ^= 1 << chance.randrange(8)

    def sync_file(self, path: Path) -> None:
        """Bring all written bytes of a file to disk."""
        self.step("sync")
        content = self.names_now[path]
        if not content.forsaken:
            content.synced = len(content.written)

    # Files

    def create(self, path: Path) -> AppendFile:
        self.step("create")
        if path in self.names_now:
            raise FileExistsError(errno.EEXIST, "File exists", str(path))
        self.names_now[path] = _Content()
        return _Appending(self, self.names_now[path])

    def open(self, path: Path) -> ReadFile:
        if self.open_error is not None:
            raise self.open_error
        if path not in self.names_now:
            raise FileNotFoundError(errno.ENOENT, "No such file", str(path))
        return _Reading(self, self.names_now[path])

    def names(self, directory: Path) -> list[str]:
        return sorted(path.name for path in self.names_now if path.parent == directory)

    def rewrite(self, path: Path, offset: int, content: bytes) -> None:
        self.step("rewrite")
        found = self.names_now[path]
        assert found.written[offset : offset + len(content)] == content
        del found.written[offset + len(content) :]
        found.synced = len(found.written)
        found.forsaken = False

    def rename(self, source: Path, target: Path) -> None:
        self.step("rename")
        self.names_now[target] = self.names_now.pop(source)

    def unlink(self, path: Path) -> None:
        self.step("unlink")
        self.names_now.pop(path, None)

    def sync_directory(self, directory: Path) -> None:
        self.step("sync_directory")
        elsewhere = {path: content for path, content in self.names_synced.items() if path.parent != directory}
        self.names_synced = elsewhere | {p: content for p, content in self.names_now.items() if p.parent == directory}

    def room(self, directory: Path) -> Room:
        total = _UNBOUNDED if self.capacity is None else self.capacity
        return Room(total, max(0, total - self.used))


@dataclass
class _Appending:
    disk: SimulatedDisk
    content: _Content

    def write(self, content: bytes) -> None:
        room = len(content) if self.disk.capacity is None else max(0, self.disk.capacity - self.disk.used)
        try:
            self.disk.step("write")
        except OSError:
            self.content.written += content[: self.disk.torn(len(content))]
            raise
        self.content.written += content[:room]
        if room < len(content):
            raise OSError(errno.ENOSPC, "No space left on device")

    def write_durably(self, content: bytes) -> None:
        self.write(content)
        self.sync()

    def sync(self) -> None:
        try:
            self.disk.step("sync")
        except PowerLost:  # the process ends, and the system goes on with what was written
            raise
        except OSError:
            self.content.forsaken = True
            raise
        if not self.content.forsaken:
            self.content.synced = len(self.content.written)

    def close(self) -> None:
        pass


@dataclass
class _Reading:
    disk: SimulatedDisk
    content: _Content

    @property
    def size(self) -> int:
        return len(self.content.written)

    def read(self, length: int, offset: int) -> bytes:
        if self.disk.reads_failing:
            self.disk.reads_failing -= 1
            raise OSError(errno.EIO, "simulated failure of a read")
        return bytes(self.content.written[offset : offset + length])

    def close(self) -> None:
        pass


def _survived(content: _Content, chance: random.Random) -> bytearray:
    rest = content.written[content.synced :]
    outcome: Callable[[], bytearray] = chance.choice(
        [
            lambda: rest,
            lambda: bytearray(),
            lambda: rest[: chance.randint(0, len(rest))],
            lambda: bytearray(len(rest)),  # length was written, content was not
            lambda: bytearray(b if chance.random() < 0.5 else 0 for b in rest),
        ]
    )
    return content.written[: content.synced] + outcome()
