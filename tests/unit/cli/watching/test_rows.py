"""The rows of ``top``."""

import pytest

from interpulse.cli.watching.rows import TABLES, shown, sorted_rows

STATS = {
    "msgRateIn": 1234.56,
    "msgThroughputIn": 2_500_000,
    "msgRateOut": 10,
    "msgThroughputOut": 0,
    "storageSize": 3_000_000,
    "publishers": [{}, {}],
    "subscriptions": {
        "a": {"msgBacklog": 5, "type": "Shared", "unackedMessages": 2, "msgRateRedeliver": 0.5, "consumers": [{}]},
        "b": {"msgBacklog": 7, "consumers": []},
    },
    "replication": {
        "west": {"replicationBacklog": 9, "connected": True, "replicationDelayInSeconds": 3},
        "east": {"msgRateOut": 1.0, "status": {"state": "HELD", "reason": "counts differ"}},
        "north": {"connected": False},
    },
}


def test_topic_when_shown_then_has_its_sums() -> None:
    table = TABLES["topics"]
    rows = list(table.rows("t", STATS))
    assert shown(table, rows) == [["t", "1,234.6", "2.50", "10.0", "0.00", "12", "3.00", "2", "2", "1"]]


def test_subscriptions_when_shown_then_each_has_a_row() -> None:
    table = TABLES["subscriptions"]
    rows = sorted_rows(table, table.rows("t", STATS), "BACKLOG")
    assert shown(table, rows) == [
        ["t", "b", "", "0.0", "0.00", "7", "0", "0.0", "0"],
        ["t", "a", "Shared", "0.0", "0.00", "5", "2", "0.5", "1"],
    ]


def test_replication_when_shown_then_has_our_state_or_that_of_the_connection() -> None:
    table = TABLES["replication"]
    rows = sorted_rows(table, table.rows("t", STATS), "CLUSTER")
    assert [(row["cluster"], row["state"], row["reason"]) for row in rows] == [
        ("east", "HELD", "counts differ"),
        ("north", "DISCONNECTED", None),
        ("west", "CONNECTED", None),
    ]
    assert shown(table, rows)[2] == ["t", "west", "CONNECTED", "0.0", "0.00", "9", "3", ""]


@pytest.mark.parametrize("kind", list(TABLES))
def test_statistics_when_empty_then_make_no_trouble(kind: str) -> None:
    table = TABLES[kind]
    for heading in table.headings:
        shown(table, sorted_rows(table, table.rows("t", {"subscriptions": None, "replication": {}}), heading))


def test_rows_when_sorted_then_numbers_fall_and_names_break_ties() -> None:
    table = TABLES["topics"]
    rows = [row for name, rate in (("b", 1), ("a", 1), ("c", 9)) for row in table.rows(name, {"msgRateIn": rate})]
    assert [row["topic"] for row in sorted_rows(table, rows, "IN/S")] == ["c", "a", "b"]
    assert [row["topic"] for row in sorted_rows(table, rows, "TOPIC")] == ["a", "b", "c"]
