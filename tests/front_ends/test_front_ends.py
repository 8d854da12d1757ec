"""The table on our broker: every front end gives the answer of the row, and leaves the records of the row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from interpulse.testing import InProcessBroker
from tests.front_ends.brokers import beyond, our_broker
from tests.front_ends.players import Players
from tests.front_ends.records import directories, found, stored_below
from tests.front_ends.rows import FAST_FRONT_ENDS, Case
from tests.front_ends.table import ROWS

CASES = [case for row in ROWS for case in row.cases(FAST_FRONT_ENDS)]


@dataclass
class Table:
    """A broker that holds what every row starts from."""

    broker: InProcessBroker
    players: Players

    def stored(self, case: Case) -> dict[str, bytes]:
        """All records of topics beside those of the case."""
        stored: dict[str, bytes] = {}
        for directory in directories(case):
            stored |= self._stored_in(directory)
        return stored

    def _stored_in(self, directory: str) -> dict[str, bytes]:
        return self.broker.call(lambda app: stored_below(app.registry.metadata, directory, depth=1))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    with (
        beyond(tmp_path_factory.mktemp("beyond"), CASES) as other,
        our_broker(tmp_path_factory.mktemp("front-ends"), CASES, other) as broker,
        Players(broker.service_url, broker.web_url) as players,
    ):
        yield Table(broker, players)


def groups() -> Iterator[Any]:
    """The questions of one row at one front end belong together."""
    for row in ROWS:
        for front_end in FAST_FRONT_ENDS:
            cases = list(row.cases((front_end,)))
            if cases:
                yield pytest.param(cases, id=f"{row.id}-{front_end}")


@pytest.mark.parametrize("cases", list(groups()))
def test_row(table: Table, cases: list[Case]) -> None:
    answers = {case.question: table.players.ask(case) for case in cases}
    assert answers == {case.question: case.expected for case in cases}
    left = found(table.stored(cases[0]), cases)
    assert {case.question: left[case.id] for case in cases} == {case.question: set(case.left.split()) for case in cases}


def test_every_row_has_a_name_of_its_own() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS)


def test_every_difference_has_its_reason() -> None:
    assert all(difference.reason for row in ROWS for difference in row.differs.values())
