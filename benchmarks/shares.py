"""Shares of a broker's processor time: a sample of its stack belongs to the kind of work of the innermost frame."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

# By the innermost frame that holds one of these marks; the first line that matches it counts. A frame is written
# "function (file:line)", and "function (library)" where a library has no lines.
_MARKS: Mapping[str, Sequence[str]] = {
    "event loop": (
        "uvloop",
        "(loop.c",
        "(core.c",
        "(linux.c",
        "(stream.c",
        "(loop-watcher.c",
        "asyncio/",
        "/eager_start.",
    ),
    "protobuf": ("(_message.", "google/protobuf/"),
    "frame building": ("interpulse/wire/commands.", "transport/output.", "transport/sinks.", "pending_publishes."),
    "parse": ("interpulse/wire/",),
    "metadata read": (
        "interpulse/rules/",
        "interpulse/broker/topics/",
        "interpulse/broker/tenancy/",
        "interpulse/storage/metadata/",
        "interpulse/storage/cas.",
        "sqlite3",
    ),
    "log": ("interpulse/storage/",),
    "live topic": ("interpulse/broker/live/",),
    "glue": ("interpulse/", "aiohttp/"),
}
_SYSTEM_CALL = re.compile(
    r"(p?(read|write)v?(64)?|(send|recv)(msg|to|from)?|f(data)?sync|open(at)?64|close|accept4|epoll_ctl|sem_post)"
    r"( \(libc.*)?"
)
_WAITS = ("epoll_wait ", "epoll_pwait ", "PyThread_acquire_lock_timed ", "take_gil ", "poll ", "select ", "sem_wait ")

SYSTEM_CALLS, OTHER = "system calls", "other"
SHARES = (*_MARKS, SYSTEM_CALLS, OTHER)


def count_shares(lines: Iterable[str]) -> Counter[str]:
    """Samples per share, of lines "outermost;...;innermost samples"; threads that wait for work are left out."""
    shares: Counter[str] = Counter()
    for line in lines:
        stack, _, samples = line.rstrip().rpartition(" ")
        share = share_of(stack.split(";"))
        if share is not None:
            shares[share] += int(samples)
    return shares


def share_of(stack: Sequence[str]) -> str | None:
    """The share that a stack counts for, its innermost frame last; None where it only waits."""
    if any(frame.startswith(_WAITS) for frame in stack[-6:]):
        return None
    if _SYSTEM_CALL.fullmatch(stack[-1]):
        return SYSTEM_CALLS
    for frame in reversed(stack):
        for share, marks in _MARKS.items():
            if any(mark in frame for mark in marks):
                return share
    return OTHER


def table(shares: Mapping[str, Counter[str]], cpu_us: Mapping[str, float]) -> str:
    """One column per scenario: percent of each share, and the processor time of one message or question."""
    lines = [f"| share | {' | '.join(shares)} |", f"| --- | {'--- | ' * len(shares)}".rstrip()]
    for share in SHARES:
        cells = [f"{counted[share] / max(counted.total(), 1):.0%}" for counted in shares.values()]
        lines.append(f"| {share} | {' | '.join(cells)} |")
    lines.append(f"| CPU, us each | {' | '.join(f'{cpu_us[name]:.2f}' for name in shares)} |")
    lines.append(f"| samples | {' | '.join(str(counted.total()) for counted in shares.values())} |")
    return "\n".join(lines)
