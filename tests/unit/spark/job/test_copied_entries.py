"""The last copy up to a position of the source, found by halving."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interpulse.client.consuming.copied_entries import CopiedEntry
from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.job.copied_entries import Found, LogPlaces, last_copy_upto

STATS = {
    "lastConfirmedEntry": "7:1",
    "ledgers": [{"ledgerId": 2, "entries": 3}, {"ledgerId": 5, "entries": 1}, {"ledgerId": 7, "entries": 0}],
}


def test_entries_are_numbered_over_all_ledgers():
    places = LogPlaces.of(STATS)
    assert places.total == 6
    assert [str(places.at(number)) for number in range(6)] == ["2:0", "2:1", "2:2", "5:0", "7:0", "7:1"]
    assert [places.number_of(places.at(number)) for number in range(6)] == list(range(6))
    assert (places.before(0), places.before(3), places.at(-1)) == (Position(2, -1), Position(5, -1), EARLIEST)
    assert LogPlaces.of({"ledgers": [], "lastConfirmedEntry": ""}).total == 0


class Log:
    """A target whose entries are copies of positions of the source, or None: published there."""

    def __init__(self, sources):
        self.places = LogPlaces(((4, len(sources) // 2), (9, len(sources)))) if sources else LogPlaces(())
        self.copies = [
            None if source is None else CopiedEntry(self.places.at(number), Position(1, source), "east", "lane")
            for number, source in enumerate(sources)
        ]
        self.asked = 0

    async def probe(self, after, upto):
        self.asked += 1
        copies = (copy for copy in self.copies if copy is not None and after < copy.there <= upto)
        return next(copies, None)


@given(st.lists(st.one_of(st.none(), st.integers(1, 3)), max_size=40), st.integers(0, 90))
async def test_search_when_others_published_between_then_finds_what_a_scan_finds(steps, upto):
    source, sources = 0, []
    for step in steps:
        source += step or 0
        sources.append(None if step is None else source)
    log = Log(sources)
    found = await last_copy_upto(log.places, Position(1, upto), log.probe)
    copies = [copy for copy in log.copies if copy is not None]
    expected = [copy.there for copy in copies if copy.source.entry <= upto]
    assert found.there == (expected[-1] if expected else None)
    assert not found.is_final or any(copy.source.entry >= upto for copy in copies)


async def test_search_asks_few_questions():
    log = Log(list(range(10_000)))
    assert await last_copy_upto(log.places, Position(1, 7_777), log.probe) == Found(log.places.at(7_777), is_final=True)
    assert log.asked < 20
