"""Reading what a cluster lists, looking twice, and making the calls; the clusters are chosen by the tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.changes import (
    CreateMissedPartitions,
    CreatePartitionedMetadata,
    CreateTopicRecord,
    DeletePartitionedMetadata,
    DeleteTopic,
    SetPartitionCount,
    TopicAdminChange,
)
from interpulse.model.errors import AuthorizationError, NamespaceNotFound, UnknownError
from interpulse.model.names import PERSISTENT, NamespaceName, TopicName
from interpulse.replication.topic_doctor import Contents, TopicDoctor
from interpulse.rules.topic_diagnosis import Disagreement
from tests.support.stub_web import StubWeb

NAMESPACE = NamespaceName("t", "ns")
ROOT = "/admin/v2/persistent/t/ns"
X = TopicName.parse("persistent://t/ns/x")
Y = TopicName.parse("persistent://t/ns/y")


@pytest.fixture
async def admin() -> AsyncIterator[tuple[StubWeb, TopicDoctor]]:
    with StubWeb() as web:
        async with AdminClient(web.url) as client:
            yield web, TopicDoctor(client, domains=[PERSISTENT])


def listed(web: StubWeb, present: list[str], partitioned: dict[str, Any]) -> None:
    """What the namespace lists from now on, and the metadata of its partitioned topics."""
    web.answer("GET", ROOT, [f"persistent://t/ns/{name}" for name in present])
    web.answer("GET", f"{ROOT}/partitioned", [f"persistent://t/ns/{name}" for name in partitioned])
    for name, metadata in partitioned.items():
        status = 200 if isinstance(metadata, dict) else metadata
        body = metadata if status == 200 else {"reason": f"Topic persistent://t/ns/{name} not found"}
        web.answer("GET", f"{ROOT}/{name}/partitions", body, status=status)


async def test_examine_when_many_topics_are_plain_then_two_requests_do(admin: tuple[StubWeb, TopicDoctor]) -> None:
    web, doctor = admin
    listed(web, [f"plain-{index}" for index in range(10_000)], {})
    seen = await doctor.examine(NAMESPACE)
    assert (seen.topics_count, seen.findings) == (10_000, ())
    assert sorted(each.target for each in web.asked) == [
        f"{ROOT}/partitioned?includeSystemTopic=true&partitionCounts=true",
        f"{ROOT}?includeSystemTopic=true",
    ]


async def test_examine_when_topics_are_partitioned_then_each_is_asked_once_without_creation(
    admin: tuple[StubWeb, TopicDoctor],
) -> None:
    web, doctor = admin
    names = [f"p{index}" for index in range(100)]
    listed(web, [f"{name}-partition-0" for name in names], {name: {"partitions": 1} for name in names})
    told: list[tuple[int, int]] = []
    seen = await doctor.examine(NAMESPACE, progress=lambda done, total: told.append((done, total)))
    assert seen.findings == ()
    asked = sorted(each.target for each in web.asked if "/partitions?" in each.target)
    assert asked == sorted(f"{ROOT}/{name}/partitions?checkAllowAutoCreation=false" for name in names)
    assert told == [(done, 100) for done in range(1, 101)]


async def test_examine_when_the_list_tells_the_counts_then_only_the_others_are_asked(
    admin: tuple[StubWeb, TopicDoctor],
) -> None:
    web, doctor = admin
    names = [f"p{index}" for index in range(100)]
    counts: dict[str, int | None] = {f"persistent://t/ns/{name}": 1 for name in names}
    web.answer("GET", ROOT, [f"persistent://t/ns/{name}-partition-0" for name in (*names, "x")])
    web.answer("GET", f"{ROOT}/partitioned", counts | {"persistent://t/ns/x": None})
    web.answer("GET", f"{ROOT}/x/partitions", {"partitions": 1, "deleted": True})
    told: list[tuple[int, int]] = []
    seen = await doctor.examine(NAMESPACE, progress=lambda done, total: told.append((done, total)))
    assert [(each.topic, each.kind) for each in seen.findings] == [(X, Disagreement.UNFINISHED_DELETION)]
    asked = [each.target for each in web.asked if "/partitions?" in each.target]
    assert asked == [f"{ROOT}/x/partitions?checkAllowAutoCreation=false"] * 2  # what is found is looked at again
    assert told == [(100, 101), (101, 101)]


async def test_examine_when_something_is_found_then_only_that_is_looked_at_again(
    admin: tuple[StubWeb, TopicDoctor],
) -> None:
    web, doctor = admin
    listed(web, ["x-partition-5", "y-partition-0"], {"x": {"partitions": 1}, "y": {"partitions": 1}})
    seen = await doctor.examine(NAMESPACE, only=None)
    assert {each.kind for each in seen.findings} == {Disagreement.MISSING_PARTITIONS, Disagreement.ORPHAN_PARTITIONS}
    *at_once, again = [each.target.split("/")[6] for each in web.asked if "/partitions?" in each.target]
    assert (sorted(at_once), again) == (["x", "y"], "x")


async def test_examine_when_the_second_look_agrees_then_a_topic_in_the_making_is_no_finding(
    admin: tuple[StubWeb, TopicDoctor],
) -> None:
    web, doctor = admin
    web.answer("GET", f"{ROOT}/partitioned", [])
    listed(web, ["x-partition-0"], {"x": {"partitions": 1}})
    seen = await doctor.examine(NAMESPACE)
    assert (seen.findings, seen.topics_count) == ((), 1)


async def test_examine_when_the_second_look_finds_something_else_then_that_is_not_told(
    admin: tuple[StubWeb, TopicDoctor],
) -> None:
    web, doctor = admin
    web.answer("GET", f"{ROOT}/partitioned", [])
    listed(web, ["x-partition-0"], {"x": {"partitions": 3}})
    assert (await doctor.examine(NAMESPACE)).findings == ()


async def test_examine_when_metadata_goes_or_cannot_be_asked_for_then_nothing_is_concluded(
    admin: tuple[StubWeb, TopicDoctor],
) -> None:
    web, doctor = admin
    listed(web, ["x-partition-0"], {"x": 404})
    assert (await doctor.examine(NAMESPACE)).findings == ()


async def test_examine_when_the_cluster_cannot_tell_the_metadata_of_one_topic_then_only_that_is_left_open(
    admin: tuple[StubWeb, TopicDoctor],
) -> None:
    web, doctor = admin
    listed(web, ["x-partition-0", "y-partition-0"], {"x": 500})
    seen = await doctor.examine(NAMESPACE)
    assert [(each.topic, each.kind) for each in seen.findings] == [(Y, Disagreement.LOST_METADATA)]
    assert [(name, type(error)) for name, error in seen.unanswered.items()] == [(X, UnknownError)]


async def test_examine_when_a_listed_name_is_none_then_is_left_out_and_told(
    admin: tuple[StubWeb, TopicDoctor],
) -> None:
    web, doctor = admin
    listed(web, ["-partition-3", "x"], {})
    seen = await doctor.examine(NAMESPACE)
    assert (seen.unreadable, seen.topics_count) == (("persistent://t/ns/-partition-3",), 1)


@pytest.mark.parametrize(("status", "error"), [(403, AuthorizationError), (404, NamespaceNotFound)])
async def test_examine_when_the_cluster_refuses_then_says_so(
    admin: tuple[StubWeb, TopicDoctor], status: int, error: type[Exception]
) -> None:
    web, doctor = admin
    web.answer("GET", ROOT, {"reason": "Namespace is not for you"}, status=status)
    web.answer("GET", f"{ROOT}/partitioned", [])
    with pytest.raises(error):
        await doctor.examine(NAMESPACE)


@pytest.mark.parametrize(
    ("call", "request_line", "body"),
    [
        (CreatePartitionedMetadata(X, 3), f"PUT {ROOT}/x/partitions?createLocalTopicOnly=false", 3),
        (SetPartitionCount(X, 3, force=True), f"POST {ROOT}/x/partitions?updateLocalTopicOnly=false&force=true", 3),
        (CreateMissedPartitions(X), f"POST {ROOT}/x/createMissedPartitions", None),
        (CreateTopicRecord(X.partition(1)), f"PUT {ROOT}/x-partition-1", {}),
        (DeletePartitionedMetadata(X), f"DELETE {ROOT}/x/partitions?force=false&deleteSchema=true", None),
        (DeleteTopic(X), f"DELETE {ROOT}/x?force=false&deleteSchema=true", None),
        (DeleteTopic(X, force=True), f"DELETE {ROOT}/x?force=true&deleteSchema=true", None),
    ],
)
async def test_treat_when_a_deletion_or_repair_is_a_call_then_it_is_made(
    admin: tuple[StubWeb, TopicDoctor], call: TopicAdminChange, request_line: str, body: Any
) -> None:
    web, doctor = admin
    listed(web, [], {})
    treatment = await doctor.treat(await doctor.examine(NAMESPACE), [call])
    made = [each for each in web.asked if each.method != "GET"]
    assert [(f"{each.method} {each.target}", each.body) for each in made] == [(request_line, body)]
    assert [(each.call, each.error) for each in treatment.attempts] == [(call, None)]


async def test_treat_when_a_call_fails_then_the_next_of_that_topic_is_not_made_and_the_others_are(
    admin: tuple[StubWeb, TopicDoctor],
) -> None:
    web, doctor = admin
    name = "a-partition-01"
    listed(web, ["x-partition-0"], {name: {"partitions": 2}})
    web.answer("PUT", f"{ROOT}/{name}-partition-0", {"reason": "no room"}, status=409)
    treatment = await doctor.treat(await doctor.examine(NAMESPACE))
    first, second = treatment.attempts
    assert (str(first.error), first.call.topic.local_name) == ("no room", f"{name}-partition-0")
    assert (second.error, second.call) == (None, CreatePartitionedMetadata(X, 1))
    assert len(treatment.left) == 2, "the lists are as before"


async def test_contents_when_the_topic_is_refused_then_what_is_recorded_is_told(
    admin: tuple[StubWeb, TopicDoctor],
) -> None:
    web, doctor = admin
    recorded = {"ledgers": [{"ledgerId": 1, "entries": 3, "size": 99}, {"ledgerId": 2}], "cursors": {"s": {}}}
    loaded, refused, unknown = X.partition(0), X.partition(1), X.partition(2)
    web.answer("GET", f"{ROOT}/x-partition-0/internalStats", {"numberOfEntries": 7, "totalSize": 70})
    web.answer("GET", f"{ROOT}/x-partition-0/stats", {"subscriptions": {"s": {"msgBacklog": 5}}})
    web.answer("GET", f"{ROOT}/x-partition-1/internal-info", recorded)
    web.answer("GET", f"{ROOT}/x-partition-2/internal-info", {"version": 0, "partitions": {}})
    web.answer("GET", f"{ROOT}/x-partition-3/internal-info", {"reason": "not here"}, status=501)
    silent, unstored = X.partition(3), TopicName.parse("non-persistent://t/ns/x")
    asked = {loaded: False, refused: True, unknown: True, silent: True, unstored: True}
    assert await doctor.contents(asked) == {
        loaded: Contents(loaded, 7, 70, {"s": 5}, exact=True),
        refused: Contents(refused, 3, 99, {"s": None}),
        unknown: Contents(unknown),
        silent: Contents(silent),
    }
    assert not [each.target for each in web.asked if "partition-1" in each.target and "tats" in each.target]
