"""The search for the last entry before a place, without a list of ledgers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interpulse.client.consuming.copied_entries import last_before
from interpulse.model.ids import EARLIEST, Position


class Log:
    """Ledgers with their entries: the source position of a copy, or None: published there."""

    def __init__(self, ledgers: dict[int, list[int | None]]) -> None:
        self.copies = [
            (Position(ledger, entry), source)
            for ledger, sources in sorted(ledgers.items())
            for entry, source in enumerate(sources)
        ]
        self.end = self.copies[-1][0] if self.copies else EARLIEST
        self.asked = 0

    async def probe(self, after: Position, upto: Position) -> tuple[Position, int] | None:
        self.asked += 1
        assert EARLIEST <= after < upto <= self.end
        wanted = ((there, source) for there, source in self.copies if source is not None and after < there <= upto)
        return next(wanted, None)


def ascending(steps: dict[int, list[int | None]]) -> dict[int, list[int | None]]:
    source = 0
    ledgers: dict[int, list[int | None]] = {}
    for ledger, entries in sorted(steps.items()):
        ledgers[ledger] = []
        for step in entries:
            source += step or 0
            ledgers[ledger].append(None if step is None else source)
    return ledgers


LEDGERS = st.dictionaries(
    st.integers(0, 60), st.lists(st.one_of(st.none(), st.integers(1, 3)), max_size=12), max_size=8
)


@given(LEDGERS, st.integers(0, 120))
async def test_search_when_others_published_between_then_finds_what_a_scan_finds(
    steps: dict[int, list[int | None]], upto: int
) -> None:
    log = Log(ascending(steps))
    expected = [copy for copy in log.copies if copy[1] is not None and copy[1] <= upto]
    found = await last_before(log.end, log.probe, lambda source: source <= upto)
    assert found == (expected[-1] if expected else None)


async def test_search_when_the_log_is_long_then_asks_few_questions() -> None:
    log = Log({1_000: list(range(9_000)), 5_000_000: list(range(9_000, 9_010)), 5_000_001: list(range(9_010, 20_000))})
    places = {4_711: Position(1_000, 4_711), 9_005: Position(5_000_000, 5), 15_000: Position(5_000_001, 5_990)}
    for upto, there in places.items():
        log.asked = 0
        assert await last_before(log.end, log.probe, upto.__ge__) == (there, upto)
        assert log.asked < 60
