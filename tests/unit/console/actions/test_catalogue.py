"""Every action makes a request and a command for the same operation."""

from __future__ import annotations

import pytest

from interpulse.console.actions.catalogue import ACTIONS
from interpulse.model.errors import InvalidRequest, InvalidTopicName

VALUES = {
    "topic": "persistent://a/b/c d",
    "subscription": "s%",
    "namespace": "a/b",
    "clusters": "east,west",
    "digest": "d1",
    "key": "maxTopics",
    "value": "a/b",
    "partitions": "4",
    "count": "3",
    "time": "1h",
    "position": "7:8",
}
TOPIC = "/admin/v2/persistent/a/b/c+d"
SUBSCRIPTION = f"{TOPIC}/subscription/s%2525"
REQUESTS = {
    "unload-topic": ("PUT", f"{TOPIC}/unload", None),
    "create-missed-partitions": ("POST", f"{TOPIC}/createMissedPartitions", None),
    "expand-topic": ("POST", f"{TOPIC}/partitions", 4),
    "skip-messages": ("POST", f"{SUBSCRIPTION}/skip/3", None),
    "skip-all-messages": ("POST", f"{SUBSCRIPTION}/skip_all", None),
    "expire-messages": ("POST", f"{SUBSCRIPTION}/expireMessages/3600", None),
    "reset-to-position": (
        "POST",
        f"{SUBSCRIPTION}/resetcursor",
        {"ledgerId": 7, "entryId": 8, "partitionIndex": -1, "batchIndex": -1, "excluded": False},
    ),
    "delete-subscription": ("DELETE", SUBSCRIPTION, None),
    "create-partitioned-topic": ("PUT", f"{TOPIC}/partitions", 4),
    "force-partition-count": ("POST", f"{TOPIC}/partitions?force=true", 4),
    "create-topic": ("PUT", TOPIC, None),
    "delete-topic": ("DELETE", f"{TOPIC}?force=true", None),
    "delete-partitioned-topic": ("DELETE", f"{TOPIC}/partitions?force=true", None),
    "adjust-replication": (
        "POST",
        "/admin/v2/namespaces/a/b/replication?adjustNamespaceLevelPoliciesAutomatically=true&planDigest=d1",
        ["east", "west"],
    ),
    "delete-schema": ("DELETE", "/admin/v2/schemas/a/b/c+d/schema", None),
    "update-dynamic-config": ("POST", "/admin/v2/brokers/configuration/maxTopics/a%2Fb", None),
    "delete-dynamic-config": ("DELETE", "/admin/v2/brokers/configuration/maxTopics", None),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_action_makes_its_request(name: str) -> None:
    request = ACTIONS[name].call(VALUES)
    assert (request.method, request.path, request.body) == REQUESTS[name]


def test_every_action_is_in_the_table() -> None:
    assert ACTIONS.keys() == REQUESTS.keys() | {"reset-to-time"}


def test_reset_to_time_asks_for_a_moment_in_the_past() -> None:
    request = ACTIONS["reset-to-time"].call(VALUES)
    assert request.path.startswith(f"{SUBSCRIPTION}/resetcursor/1")


@pytest.mark.parametrize("name", ACTIONS)
def test_action_has_a_command_and_a_page_to_return_to(name: str) -> None:
    action = ACTIONS[name]
    assert action.command_line(VALUES).startswith("interpulse-admin ")
    assert action.back(VALUES).startswith("/console/")


def test_values_that_name_nothing_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="A position is ledger:entry, not 'x'"):
        ACTIONS["reset-to-position"].call(VALUES | {"position": "x"})
    with pytest.raises(InvalidTopicName):
        ACTIONS["unload-topic"].call(VALUES | {"topic": "a/b"})
