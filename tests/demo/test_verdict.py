"""The verdict of the demonstration must be able to fail, in every way it claims to notice."""

from __future__ import annotations

import pytest

from dataset import Row
from verdict import Ledger, Verdict

ROWS = [Row(b'{"n":%d}' % number, f"key-{number % 2}", 1_000 + number) for number in range(6)]
Message = tuple[int, bytes, str | None, int | None, dict[str, str]]


def published() -> tuple[Ledger, list[Message]]:
    ledger = Ledger()
    messages = [
        (number % 2, row.value, row.key, row.event_time_ms, ledger.published(row)) for number, row in enumerate(ROWS)
    ]
    return ledger, messages


def conclude(ledger: Ledger, messages: list[Message]) -> Verdict:
    for message in messages:
        ledger.arrived(*message)
    return ledger.conclude()


def test_verdict_when_everything_arrives_once_is_equal() -> None:
    verdict = conclude(*published())
    assert verdict.equal
    assert verdict.arrived == verdict.published == len(ROWS)


def test_verdict_when_replication_added_its_own_properties_is_equal() -> None:
    ledger, messages = published()
    marks = {"__MSG_PROP_REPL_SOURCE_POSITION": "3:4", "__interpulse_seq": "9"}
    assert conclude(ledger, [(*message[:4], message[4] | marks) for message in messages]).equal


@pytest.mark.parametrize(
    ("index", "field", "value", "problem"),
    [
        pytest.param(2, 1, b"other", "different content", id="payload"),
        pytest.param(2, 2, "key-9", "different content", id="key"),
        pytest.param(2, 3, 7, "different content", id="event-time"),
        pytest.param(2, 4, {"row": "2", "extra": "x"}, "different content", id="properties"),
        pytest.param(2, 4, {}, "unknown message", id="no-row-number"),
        pytest.param(2, 0, 1, "key in two partitions", id="partition"),
    ],
)
def test_verdict_when_one_field_differs_names_it(index: int, field: int, value: object, problem: str) -> None:
    ledger, messages = published()
    changed: list[object] = list(messages[index])
    changed[field] = value
    messages[index] = tuple(changed)  # type: ignore[assignment]
    verdict = conclude(ledger, messages)
    assert not verdict.equal
    assert verdict.problems[problem] == 1


def test_verdict_when_a_message_is_missing_counts_it() -> None:
    ledger, messages = published()
    verdict = conclude(ledger, messages[1:])
    assert verdict.problems == {"missing": 1}


def test_verdict_when_a_message_comes_twice_counts_it() -> None:
    ledger, messages = published()
    verdict = conclude(ledger, [*messages, messages[-1]])
    assert verdict.problems == {"duplicate": 1}
    assert not verdict.equal


def test_verdict_when_two_of_one_key_swap_counts_it() -> None:
    ledger, messages = published()
    messages[0], messages[2] = messages[2], messages[0]
    assert conclude(ledger, messages).problems == {"out of order": 1}
