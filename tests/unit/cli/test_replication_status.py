"""The status of replication in words."""

from __future__ import annotations

from interpulse.cli.replication_status import status_as_text

HELD = {
    "topic": "persistent://demo/a/x",
    "cluster": "west",
    "state": "HELD",
    "since": 1_700_000_000_000,
    "reason": "x is a partitioned topic of 2 partitions there",
    "remedy": "make the shapes equal",
    "nextRetryAt": 1_700_000_060_500,
    "lagEntries": 7,
    "lagSeconds": 1.5,
    "provisioned": None,
}
GOING = {**dict.fromkeys(HELD), "topic": "persistent://demo/a/y", "cluster": "west", "state": "REPLICATING"}


def test_status_says_where_why_what_to_do_and_when() -> None:
    assert status_as_text([HELD, GOING, GOING | {"lagEntries": 3}]).splitlines() == [
        "persistent://demo/a/x -> west: HELD since 2023-11-14 22:13:20 UTC, 7 entries, 1.5 s behind",
        "  reason: x is a partitioned topic of 2 partitions there",
        "  remedy: make the shapes equal",
        "  next retry: 2023-11-14 22:14:20 UTC",
        "persistent://demo/a/y -> west: REPLICATING",
        "persistent://demo/a/y -> west: REPLICATING, 3 entries behind",
    ]


def test_status_of_nothing_is_a_sentence() -> None:
    assert status_as_text([]) == "Nothing is replicated from here."
