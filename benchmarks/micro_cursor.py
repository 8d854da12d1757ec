"""What acknowledgements cost in a cursor: microseconds of CPU per entry.

    python -m benchmarks.micro_cursor [entries]

Eight consumers got the entries of a ledger by chance, as on Key_Shared, and acknowledge them in turns, so many at once;
or runs of a hundred entries are acknowledged in any order.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence

from interpulse.broker.live.cursor import Cursor
from interpulse.model.ids import Position

CONSUMERS = 8
RUN = 100
REPEATS = 7
LEDGER = 1


class OneLedger:
    """A log of one ledger."""

    def __init__(self, entries: int) -> None:
        self._entries = entries

    def next_position(self, after: Position) -> Position | None:
        entry = after.entry + 1
        return Position(LEDGER, entry) if entry < self._entries else None

    def entries_between(self, after: Position, upto: Position) -> int:
        return upto.entry - after.entry


def in_turns(entries: int, at_once: int, chance: random.Random) -> list[list[Position]]:
    """What the consumers acknowledge, one after the other."""
    held: list[list[Position]] = [[] for _ in range(CONSUMERS)]
    for entry in range(entries):
        chance.choice(held).append(Position(LEDGER, entry))
    ends = range(0, max(map(len, held)), at_once)
    return [part for begin in ends for each in held if (part := each[begin : begin + at_once])]


def runs(entries: int, chance: random.Random) -> list[list[Position]]:
    found = [[Position(LEDGER, begin + number) for number in range(RUN)] for begin in range(0, entries, RUN)]
    chance.shuffle(found)
    return found


def measure(entries: int, batches: Sequence[list[Position]]) -> float:
    """The seconds until all is acknowledged; a batch of one is acknowledged by itself."""
    cursor = Cursor(OneLedger(entries), Position(LEDGER, -1))
    begin = time.process_time()
    for batch in batches:
        if len(batch) == 1:
            cursor.acknowledge(batch[0])
        else:
            cursor.acknowledge_all(batch)
    spent = time.process_time() - begin
    assert cursor.mark_delete == Position(LEDGER, entries - 1)
    return spent


def main(entries: int) -> None:
    chance = random.Random(1)
    cases = {f"scattered, {size} at once": in_turns(entries, size, chance) for size in (1000, 200, 20, 1)}
    cases[f"runs of {RUN}"] = runs(entries, chance)
    for name, batches in cases.items():
        best = min(measure(entries, batches) for _ in range(REPEATS))
        print(f"{name:30} {best / entries * 1e6:6.2f} us")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40_000)
