from __future__ import annotations

import pytest

from interpulse.broker.live.registry.retention import trim_before
from interpulse.model.ids import LATEST, Position
from interpulse.model.policies.policy_records import RetentionPolicies
from interpulse.storage.api import LedgerRecord

MINUTE, MEGABYTE = 60_000, 1024 * 1024
LEDGERS = [
    LedgerRecord(1, 10, MEGABYTE, 0),
    LedgerRecord(4, 10, MEGABYTE, 10 * MINUTE),
    LedgerRecord(7, 10, MEGABYTE, 20 * MINUTE),
]


@pytest.mark.parametrize(
    ("acknowledged", "retention", "before"),
    [
        pytest.param(LATEST, (0, 0), Position(7, 0), id="nothing is kept: all but the current one goes"),
        pytest.param(Position(4, 9), (0, 0), Position(7, 0), id="a cursor at the end of a ledger has passed it"),
        pytest.param(Position(4, 8), (0, 0), Position(4, 0), id="a cursor inside a ledger keeps it"),
        pytest.param(Position(1, 3), (0, 0), None, id="a cursor in the first ledger keeps everything"),
        pytest.param(LATEST, (-1, -1), None, id="unlimited"),
        pytest.param(LATEST, (15, -1), Position(4, 0), id="by time: full for 20 minutes goes, for 10 stays"),
        pytest.param(LATEST, (-1, 2), Position(4, 0), id="by size: until 2 MB are left"),
        pytest.param(LATEST, (-1, 3), None, id="by size: 3 MB are allowed"),
    ],
)
def test_trim_before(acknowledged: Position, retention: tuple[int, int], before: Position | None) -> None:
    assert trim_before(LEDGERS, acknowledged, RetentionPolicies(*retention), 30 * MINUTE) == before


def test_trim_before_when_there_is_only_the_current_ledger_then_nothing_goes() -> None:
    assert trim_before(LEDGERS[:1], LATEST, RetentionPolicies(0, 0), 99 * MINUTE) is None
    assert trim_before([], LATEST, RetentionPolicies(0, 0), 99 * MINUTE) is None
