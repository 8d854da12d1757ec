"""``-o wide``: the rows of a list with more columns, by one or two more questions however many rows there are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin

PERSISTENT = "/admin/v2/persistent/t/ns"
NON_PERSISTENT = "/admin/v2/non-persistent/t/ns"
BOUNDARIES = ["0x00000000", "0x80000000", "0xffffffff"]
NAMES = ["persistent://t/ns/p-partition-0", "persistent://t/ns/p-partition-1", "persistent://t/ns/x-partition-7"]


def cells(stdout: str) -> list[list[str]]:
    return [line.split() for line in stdout.splitlines()]


@pytest.fixture
def counts() -> Any:
    """What the list of partitioned topics answers."""
    return {"persistent://t/ns/p": 2, "persistent://t/ns/going": None}


@pytest.fixture
def topics(web: StubWeb, counts: Any) -> StubWeb:
    web.answer("GET", PERSISTENT, NAMES)
    web.answer("GET", NON_PERSISTENT, ["non-persistent://t/ns/n"])
    web.answer("GET", f"{PERSISTENT}/partitioned", counts)
    web.answer("GET", f"{NON_PERSISTENT}/partitioned", {})
    web.answer("GET", "/admin/v2/namespaces/t/ns/topics", NAMES)
    web.answer("GET", "/admin/v2/namespaces/t/ns/bundles", {"boundaries": BOUNDARIES, "numBundles": 2})
    return web


@pytest.mark.parametrize("command", [("topics", "list", "t/ns", "-td", "persistent"), ("namespaces", "topics", "t/ns")])
def test_topics_when_wide_then_have_partition_counts_and_bundles(
    topics: StubWeb, run_admin: RunAdmin, command: tuple[str, ...]
) -> None:
    heading, *rows = cells(run_admin(*command, "-o", "wide").stdout)
    assert heading == ["TOPIC", "PARTITION", "PARTITIONS", "BUNDLE"]
    assert [row[:-1] for row in rows] == [[NAMES[0], "0", "2"], [NAMES[1], "1", "2"], [NAMES[2]]]
    assert {row[-1] for row in rows} <= {"0x00000000_0x80000000", "0x80000000_0xffffffff"}
    assert len(topics.asked) <= 4


@pytest.mark.parametrize("counts", [["persistent://t/ns/p"]])
@pytest.mark.usefixtures("topics")
def test_topics_when_the_cluster_lists_no_counts_then_the_cells_are_empty(run_admin: RunAdmin) -> None:
    _, first, *_ = cells(run_admin("topics", "list", "t/ns", "-o", "wide").stdout)
    assert first[:-1] == [NAMES[0], "0"]
    listed = run_admin("topics", "list-partitioned-topics", "t/ns", "-o", "wide").stdout
    assert listed == "TOPIC                PARTITIONS\npersistent://t/ns/p\n"


def test_partitioned_topics_when_wide_then_have_their_counts(topics: StubWeb, run_admin: RunAdmin) -> None:
    listed = run_admin("topics", "list-partitioned-topics", "t/ns", "-o", "wide").stdout
    assert cells(listed) == [["TOPIC", "PARTITIONS"], ["persistent://t/ns/p", "2"], ["persistent://t/ns/going"]]


@pytest.mark.parametrize(("partitions", "stats"), [(0, "stats"), (2, "partitioned-stats")])
def test_subscriptions_when_wide_then_have_their_figures(
    web: StubWeb, run_admin: RunAdmin, partitions: int, stats: str
) -> None:
    one: dict[str, Any] = {"type": "Shared", "msgBacklog": 3, "unackedMessages": 1, "consumers": [{}, {}]}
    one |= {"msgRateOut": 12.34, "durable": True}
    web.answer("GET", f"{PERSISTENT}/x/subscriptions", ["a", "new"])
    web.answer("GET", f"{PERSISTENT}/x/partitions", {"partitions": partitions})
    web.answer("GET", f"{PERSISTENT}/x/{stats}", {"subscriptions": {"a": one}})
    listed = run_admin("topics", "subscriptions", "t/ns/x", "-o", "wide").stdout
    assert cells(listed) == [
        ["SUBSCRIPTION", "TYPE", "BACKLOG", "UNACKED", "CONSUMERS", "OUT/S", "DURABLE"],
        ["a", "Shared", "3", "1", "2", "12.3", "true"],
        ["new"],
    ]


def test_brokers_when_wide_then_tell_the_leader_and_why_they_have_bundles(web: StubWeb, run_admin: RunAdmin) -> None:
    status = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
    web.answer("GET", "/admin/v2/brokers", ["b:1", "b:2"])
    web.answer("GET", "/admin/v2/brokers/leaderBroker", {"brokerId": "b:2"})
    web.answer("GET", "/admin/v2/brokers/east/b%3A1/ownedNamespaces", {"t/ns/0x0_0xf": status})
    assert cells(run_admin("-o", "wide", "brokers", "list").stdout) == [
        ["BROKER", "LEADER"], ["b:1", "false"], ["b:2", "true"],
    ]  # fmt: skip
    assert cells(run_admin("brokers", "namespaces", "east", "-u", "b:1", "-o", "wide").stdout) == [
        ["BUNDLE", "BROKER_ASSIGNMENT", "IS_CONTROLLED", "IS_ACTIVE"], ["t/ns/0x0_0xf", "shared", "false", "true"],
    ]  # fmt: skip


def test_list_when_nothing_more_is_known_then_refuses_to_be_wide(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", "/admin/v2/tenants", ["a", "b"])
    result = run_admin("tenants", "list", "-o", "wide")
    assert (result.exit_code, "no more columns" in result.stderr) == (2, True)


def test_object_when_wide_then_is_a_table(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", "/admin/v2/tenants/a", {"adminRoles": ["r"], "allowedClusters": ["east"]})
    wide, table = (run_admin("tenants", "get", "a", "-o", form).stdout for form in ("wide", "table"))
    assert wide == table != ""
