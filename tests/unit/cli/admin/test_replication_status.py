"""The status of replication in words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import click
import pytest
from click.testing import CliRunner

from interpulse.cli.admin.replication_status import show_status, status_as_text
from interpulse.model.errors import NotConnected
from interpulse.terminal.output import format_option

HELD = {
    "topic": "persistent://demo/a/x",
    "cluster": "west",
    "state": "HELD",
    "since": 1_700_000_000_000,
    "reason": "x is a partitioned topic of 2 partitions there",
    "remedy": "make the partition counts equal",
    "nextRetryAt": 1_700_000_060_500,
    "lagEntries": 7,
    "lagSeconds": 1.5,
    "provisioned": None,
}
GOING = {**dict.fromkeys(HELD), "topic": "persistent://demo/a/y", "cluster": "west", "state": "REPLICATING"}


def test_status_says_where_why_what_to_do_and_when() -> None:
    skipping = {**GOING, "skippedEntries": 1200}
    assert status_as_text([HELD, GOING, skipping]).splitlines() == [
        "persistent://demo/a/x -> west: HELD since 2023-11-14 22:13:20 UTC, 7 entries, 1.5 s behind",
        "  reason: x is a partitioned topic of 2 partitions there",
        "  remedy: make the partition counts equal",
        "  next retry: 2023-11-14 22:14:20 UTC",
        "persistent://demo/a/y -> west: REPLICATING",
        "persistent://demo/a/y -> west: REPLICATING",
        "  skipped: 1,200 entries, as time to live or an operator moved the cursor past them",
    ]


@pytest.mark.parametrize(
    ("entries", "messages", "seconds", "told"),
    [
        (0, 0, 0.0, "0 messages, 0.0 s behind"),
        (1, None, 0.5, "1 entry, 0.5 s behind"),
        (3, None, None, "3 entries behind"),
        (1, 1, 0.5, "about 1 message (1 entry), 0.5 s behind"),
        (1200, 90_000, 4.5, "about 90,000 messages (1,200 entries), 4.5 s behind"),
    ],
)
def test_lag_is_told_in_messages_where_they_are_known(
    entries: int, messages: int | None, seconds: float | None, told: str
) -> None:
    record = GOING | {"lagEntries": entries, "lagMessages": messages, "lagSeconds": seconds}
    assert status_as_text([record]) == f"persistent://demo/a/y -> west: REPLICATING, {told}"


def run(*answers: list[Mapping[str, Any]] | Exception, watched: bool, form: str = "") -> tuple[str, str]:
    """What is printed for these answers; the last of them is interrupted as Ctrl-C does it."""
    remaining = list(answers)

    async def ask() -> list[Mapping[str, Any]]:
        if not remaining:
            raise asyncio.CancelledError
        answer = remaining.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @click.command()
    @format_option()
    def command() -> None:
        asyncio.run(show_status(ask, watched=watched, pause_s=0))

    told = CliRunner().invoke(command, ["-o", form] if form else [])
    assert told.exit_code == 0, told.output
    return told.stdout, told.stderr


def test_times_are_dates_in_a_table_and_numbers_for_programs() -> None:
    table, _ = run([HELD], watched=False, form="table")
    assert "2023-11-14 22:13:20 UTC" in table
    assert "2023-11-14 22:14:20 UTC" in table
    assert "1700000000000" in run([HELD], watched=False, form="json")[0]


def test_watching_tells_what_changes_until_it_is_interrupted() -> None:
    out, err = run([HELD], [HELD], NotConnected("east is away"), [GOING], watched=True)
    assert out == status_as_text([HELD]) + "\n" + status_as_text([GOING]) + "\n"
    assert "east is away" in err


def test_status_of_nothing_is_a_sentence() -> None:
    assert status_as_text([]) == "Nothing is replicated from here."
