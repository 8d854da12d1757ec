"""Partition metadata, lookup, topic lists: answers and typed refusals."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from interpulse.model.errors import (
    AuthorizationError,
    MetadataError,
    NamespaceNotFound,
    NotAllowed,
    ServerError,
    TopicNotFound,
)
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.hashing import topics_hash
from tests.support import commands
from tests.support.waiting import eventually

FAILED = pb.CommandPartitionedTopicMetadataResponse.Failed
SUCCESS = pb.CommandPartitionedTopicMetadataResponse.Success
X = "persistent://public/default/x"


async def test_metadata_when_flag_is_absent_then_asked_with_creation(client: Any) -> None:
    answer = await client.ask(commands.partitioned_metadata(3, "a/b/c"))
    assert (answer.request_id, answer.response, answer.partitions) == (3, 0, 4)


async def test_metadata_when_creation_is_off_then_typed_topic_not_found(client: Any) -> None:
    answer = await client.ask(commands.partitioned_metadata(3, "a/b/c", create=False))
    assert (answer.request_id, answer.response, answer.error) == (3, FAILED, ServerError.TopicNotFound)
    assert answer.message == ""


@pytest.mark.parametrize("name", ["a/b", "persistent://a/b/c/d", "-partition-3"])
async def test_metadata_when_name_is_invalid_then_typed_17(client: Any, name: str) -> None:
    answer = await client.ask(commands.partitioned_metadata(3, name))
    assert (answer.response, answer.error) == (FAILED, ServerError.InvalidTopicName)
    assert answer.message.startswith("Invalid topic name: ")


async def test_metadata_when_no_permit_is_left_then_too_many_requests(client: Any) -> None:
    client.context.permits_max = 0
    answer = await client.ask(commands.partitioned_metadata(3, "a/b/c"))
    assert answer.error == ServerError.TooManyRequests
    assert answer.message == "Failed due to too many pending lookup requests"


@pytest.mark.parametrize(
    ("failure", "code", "message"),
    [
        pytest.param(TopicNotFound("Topic x not found"), ServerError.TopicNotFound, "", id="absent"),
        pytest.param(
            NamespaceNotFound("Namespace not found: a/b"), ServerError.TopicNotFound, "Namespace not found: a/b",
            id="namespace-missing",
        ),
        pytest.param(NotAllowed("too many"), ServerError.NotAllowedError, "too many", id="limit"),
        pytest.param(MetadataError("disk"), ServerError.MetadataError, "disk", id="metadata-store"),
        pytest.param(ValueError("bug"), ServerError.UnknownError, "The broker failed, request 3", id="fault-of-ours"),
    ],
)  # fmt: skip
async def test_metadata_when_it_fails_then_typed_and_the_permit_is_given_back(
    client: Any, failure: Exception, code: ServerError, message: str
) -> None:
    client.context.permits_max, client.context.failure = 1, failure
    for _ in range(3):
        answer = await client.ask(commands.partitioned_metadata(3, "a/b/c"))
        assert (answer.response, answer.error, answer.message) == (FAILED, code, message)
    client.context.failure = None
    assert (await client.ask(commands.partitioned_metadata(3, "a/b/c"))).partitions == 4


async def test_metadata_when_namespace_is_missing_and_creation_is_off_then_no_message(client: Any) -> None:
    client.context.failure = NamespaceNotFound("Namespace not found: a/b")
    answer = await client.ask(commands.partitioned_metadata(3, "a/b/c", create=False))
    assert (answer.error, answer.message) == (ServerError.TopicNotFound, "")


async def test_permit_when_the_name_is_invalid_then_none_is_taken(client: Any) -> None:
    client.context.permits_max = 1
    for _ in range(3):
        answer = await client.ask(commands.partitioned_metadata(3, "-partition-3"))
        assert answer.error == ServerError.InvalidTopicName
    assert (await client.ask(commands.partitioned_metadata(3, "a/b/c"))).partitions == 4


async def test_permit_when_the_client_leaves_meanwhile_then_given_back(context: Any, dial: Any) -> None:
    context.permits_max, context.gate = 1, asyncio.Event()
    leaving, staying = dial(), dial()
    for each in (leaving, staying):
        await each.greet()
    leaving.send(commands.partitioned_metadata(3, "a/b/c"))
    assert (await staying.ask(commands.partitioned_metadata(3, "a/b/c"))).error == ServerError.TooManyRequests
    leaving.end()
    context.gate.set()
    await eventually(lambda: not context.permits.taken)
    assert (await staying.ask(commands.partitioned_metadata(3, "a/b/c"))).partitions == 4


async def test_metadata_when_known_then_told_beside_what_has_to_wait(client: Any) -> None:
    client.context.gate, client.context.known = asyncio.Event(), {X: 6}
    client.send(commands.partitioned_metadata(3, "a/b/c"))
    answer = await client.ask(commands.partitioned_metadata(4, X))
    assert (answer.request_id, answer.partitions, answer.response) == (4, 6, SUCCESS)
    client.context.gate.set()
    (waited,) = await client.answers()
    assert waited.command.partitionMetadataResponse.partitions == 4


async def test_metadata_when_known_and_no_permit_is_left_then_refused(client: Any) -> None:
    client.context.permits_max, client.context.known = 0, {X: 6}
    assert (await client.ask(commands.partitioned_metadata(3, X))).error == ServerError.TooManyRequests
    assert client.context.permits.rejected == 1
    client.context.permits_max = 1
    for _ in range(2):  # a known answer takes none
        assert (await client.ask(commands.partitioned_metadata(3, X))).partitions == 6


async def test_metadata_when_a_run_has_known_and_unknown_topics_then_each_question_has_its_answer(client: Any) -> None:
    client.context.known = {X: 6, f"{X}y": 6, f"{X}z": 0}
    names = [X, f"{X}y", "a/b/c", X, f"{X}z", "-partition-3", f"{X}z"]
    client.send(*(commands.partitioned_metadata(number, name) for number, name in enumerate(names)))
    contents = [each.command.partitionMetadataResponse for each in await client.answers()]
    answers = {each.request_id: (each.partitions, each.error) for each in contents}
    assert [each.request_id for each in contents if each.request_id in (0, 1, 3, 4, 6)] == [0, 1, 3, 4, 6]
    unknown, invalid = (4, 0), (0, ServerError.InvalidTopicName)
    assert [answers[number] for number in range(7)] == [(6, 0), (6, 0), unknown, (6, 0), (0, 0), invalid, (0, 0)]


async def test_questions_when_authorization_is_on_then_its_filter_is_asked_first(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.context.known, client.context.policies_unchanged = {X: 6}, True
    await client.ask(commands.lookup(2, X))
    refused: list[int] = []

    async def refuse(connection: Any, session: Any, kind: int, *rest: Any) -> None:
        refused.append(kind)
        raise AuthorizationError("no")

    monkeypatch.setattr("interpulse.broker.binary.handlers.handle_if_authorized", refuse)
    client.connection.session = SimpleNamespace(authorization=object(), close=lambda: None)
    for question in (commands.partitioned_metadata(3, X), commands.lookup(4, X)):
        assert (await client.ask(question)).error == ServerError.AuthorizationError
    assert refused == [pb.BaseCommand.PARTITIONED_METADATA, pb.BaseCommand.LOOKUP]


async def test_lookups_when_pipelined_then_counted_each(client: Any) -> None:
    client.context.policies_unchanged = True
    await client.ask(commands.lookup(0, X))
    client.send(*(commands.lookup(number, X) for number in range(1, 2001)))
    answers = [each.command.lookupTopicResponse for each in await client.answers()]
    assert [each.request_id for each in answers] == list(range(1, 2001))
    assert client.context.lookups.meter.answered == 2001
    assert client.context.lookups.meter.quantiles(0.5) == {0.5: 0.0}


async def test_lookup_when_authoritative_then_not_told_from_memory(client: Any) -> None:
    client.context.policies_unchanged = True
    first = await client.ask(commands.lookup(3, X))
    client.context.policies_unchanged = False
    client.context.lookups.cached = lambda topic: pytest.fail("it may have another owner")
    assert await client.ask(commands.lookup(3, X, authoritative=True)) == first


async def test_lookup_when_known_then_answered_the_same_and_counted(client: Any) -> None:
    first = await client.ask(commands.lookup(3, X))
    client.context.policies_unchanged = True
    assert await client.ask(commands.lookup(3, X)) == first
    client.context.permits_max = 0
    assert (await client.ask(commands.lookup(3, X))).error == ServerError.TooManyRequests
    assert client.context.lookups.meter.answered == 2


async def test_lookup_when_known_and_a_listener_is_asked_for_then_refused(client: Any) -> None:
    client.context.policies_unchanged = True
    await client.ask(commands.lookup(3, X))
    answer = await client.ask(commands.lookup(3, X, listener_name="external"))
    assert answer.response == pb.CommandLookupTopicResponse.Failed
    assert "external" in answer.message


async def test_lookup_when_namespace_exists_then_this_broker(client: Any) -> None:
    answer = await client.ask(commands.lookup(3, "persistent://public/default/x", listener_name=""))
    assert answer.response == pb.CommandLookupTopicResponse.Connect
    assert (answer.request_id, answer.brokerServiceUrl) == (3, "pulsar://127.0.0.1:6650")
    assert answer.authoritative
    assert not answer.proxy_through_service_url


async def test_lookup_when_namespace_is_missing_then_typed_11(client: Any) -> None:
    answer = await client.ask(commands.lookup(3, "persistent://nobody/default/x"))
    assert (answer.response, answer.error) == (pb.CommandLookupTopicResponse.Failed, ServerError.TopicNotFound)


async def test_lookup_when_listener_is_unknown_then_refused_in_words_that_clients_know(client: Any) -> None:
    answer = await client.ask(commands.lookup(3, "persistent://public/default/x", listener_name="test"))
    assert answer.error == ServerError.ServiceNotReady
    assert "the broker do not have test listener" in answer.message


BOTH = ["persistent://public/default/a", "persistent://public/default/b"]


async def test_topic_list_when_hash_is_new_then_whole_list_unfiltered(client: Any) -> None:
    answer = await client.ask(commands.get_topics_of_namespace(3, "public/default"))
    assert list(answer.topics) == BOTH
    assert (answer.topics_hash, answer.changed, answer.filtered) == ("c7559e98", True, False)


async def test_topic_list_when_pattern_is_given_then_what_matches_with_its_own_hash(client: Any) -> None:
    ask = commands.get_topics_of_namespace
    answer = await client.ask(ask(3, "public/default", topics_pattern="persistent://.*a"))
    assert (list(answer.topics), answer.topics_hash, answer.filtered) == (BOTH[:1], "e4a876e3", True)
    again = await client.ask(ask(4, "public/default", topics_pattern=".*a", topics_hash="e4a876e3"))
    assert (list(again.topics), again.changed, again.filtered) == ([], False, True)


@pytest.mark.parametrize(
    ("limits", "pattern"),
    [
        pytest.param({}, "persistent://" + "x" * 38, id="longer-than-50"),
        pytest.param({"pattern_length_max": 2}, ".*a", id="longer-than-configured"),
        pytest.param({}, "(?=a).*", id="of-java-alone"),
        pytest.param({"patterns_evaluated": False}, ".*a", id="switched-off"),
    ],
)
async def test_topic_list_when_pattern_is_not_evaluated_here_then_unfiltered(
    dial: Any, limits: dict[str, Any], pattern: str
) -> None:
    client = dial(**limits)
    await client.greet()
    answer = await client.ask(commands.get_topics_of_namespace(3, "public/default", topics_pattern=pattern))
    assert (list(answer.topics), answer.filtered) == (BOTH, False)


async def test_topic_list_when_hash_still_holds_then_unchanged_and_empty(client: Any) -> None:
    answer = await client.ask(commands.get_topics_of_namespace(3, "public/default", topics_hash="c7559e98"))
    assert list(answer.topics) == []
    assert not answer.changed


async def test_topic_list_when_namespace_is_missing_then_empty(client: Any) -> None:
    mode = pb.CommandGetTopicsOfNamespace.NON_PERSISTENT
    answer = await client.ask(commands.get_topics_of_namespace(3, "no/such", mode=mode))
    assert (list(answer.topics), answer.topics_hash, answer.changed) == ([], "00000000", True)


async def test_topic_list_when_namespace_is_invalid_then_error(client: Any) -> None:
    answer = await client.ask(commands.get_topics_of_namespace(3, "oops"))
    assert (answer.request_id, answer.error) == (3, ServerError.InvalidTopicName)


NAMESPACE = "public/default"
A, B, C = (TopicName.parse(f"persistent://public/default/{name}") for name in "abc")


async def watch(client: Any, pattern: str = ".*", watcher_id: int = 7, **options: Any) -> Any:
    return await client.ask(commands.watch_topic_list(1, watcher_id, NAMESPACE, pattern, **options))


async def updates(client: Any) -> list[Any]:
    return [frame.command.watchTopicUpdate for frame in await client.answers()]


async def test_watcher_when_opened_then_has_the_list_and_hears_of_changes(client: Any, context: Any) -> None:
    answer = await watch(client)
    assert (answer.request_id, answer.watcher_id, list(answer.topic)) == (1, 7, [str(A), str(B)])
    assert answer.topics_hash == "c7559e98"
    context.watches[0].update({C}, {A})
    (update,) = await updates(client)
    assert (update.watcher_id, list(update.new_topics), list(update.deleted_topics)) == (7, [str(C)], [str(A)])
    assert update.topics_hash == topics_hash([str(B), str(C)])


async def test_watcher_when_the_client_has_the_list_then_not_sent_again(client: Any) -> None:
    answer = await watch(client, topics_hash="c7559e98")
    assert (list(answer.topic), answer.topics_hash) == ([], "c7559e98")


async def test_watcher_when_asked_for_again_then_answers_with_its_list_as_it_is_now(client: Any, context: Any) -> None:
    await watch(client, ".*/[ab]")
    context.watches[0].update(set(), {A})
    await updates(client)
    again = await watch(client, "another pattern", topics_hash="00000000")
    assert list(again.topic) == [str(B)]
    assert list((await watch(client, topics_hash=again.topics_hash)).topic) == []
    assert len(context.watches) == 1


async def test_watcher_when_the_client_does_not_read_then_gets_one_update_later(client: Any, context: Any) -> None:
    await watch(client)
    client.connection.pause_writing()
    context.watches[0].update({C}, set())
    context.watches[0].update(set(), {A, C})
    assert await updates(client) == []
    client.connection.resume_writing()
    (update,) = await updates(client)
    assert (list(update.new_topics), list(update.deleted_topics)) == ([], [str(A)])
    client.connection.resume_writing()
    assert await updates(client) == []


@pytest.mark.parametrize("ending", ["close", "connection"])
async def test_watcher_when_closed_then_the_store_is_not_followed_for_it(
    client: Any, context: Any, ending: str
) -> None:
    await watch(client)
    if ending == "close":
        assert (await client.ask(commands.watch_topic_list_close(3, 7))).request_id == 3
    else:
        client.end()
    assert context.watches == []


async def test_watcher_when_closed_and_unknown_then_success(client: Any) -> None:
    assert (await client.ask(commands.watch_topic_list_close(3, 7))).request_id == 3


@pytest.mark.parametrize("ending", ["close", "connection"])
async def test_watcher_when_it_is_left_while_being_opened_then_does_not_stay(
    client: Any, context: Any, ending: str
) -> None:
    context.gate = asyncio.Event()
    client.send(commands.watch_topic_list(1, 7, NAMESPACE, ".*"))
    await client.answers()
    if ending == "close":
        client.send(commands.watch_topic_list_close(3, 7))
    else:
        client.end()
    context.gate.set()
    await client.answers()
    assert context.watches == []


async def test_watcher_when_its_client_is_gone_before_it_is_opened_then_the_store_is_not_followed_for_it(
    client: Any, context: Any
) -> None:
    client.send(commands.watch_topic_list(1, 7, NAMESPACE, ".*"))
    client.end()  # permissions may take as long to look up
    await client.answers()
    assert context.watches == []


async def test_watcher_when_asked_for_twice_while_being_opened_then_the_second_is_told_to_wait(
    client: Any, context: Any
) -> None:
    context.gate = asyncio.Event()
    client.send(commands.watch_topic_list(1, 7, NAMESPACE, ".*"))
    await client.answers()
    refused = await watch(client)
    assert refused.error == ServerError.ServiceNotReady
    context.gate.set()
    (opened,) = await client.answers()
    assert opened.command.type == pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS


async def test_watcher_when_the_names_cannot_be_read_then_refused_and_free_for_another_try(
    client: Any, context: Any
) -> None:
    context.failure = MetadataError("no disk")
    assert (await watch(client)).error == ServerError.MetadataError
    context.failure = None
    assert (await watch(client)).watcher_id == 7


@pytest.mark.parametrize(
    ("limits", "pattern", "code", "message"),
    [
        pytest.param(
            {}, "persistent://" + "x" * 51, 22, "Pattern longer than maximum: 50", id="too-long-without-its-domain"
        ),
        pytest.param({}, "(?=x)", 22, "Invalid topics pattern: (?=x): invalid perl", id="of-java-alone"),
        pytest.param({"patterns_evaluated": False}, "x", 22, "Evaluating subscription patterns is disabled.", id="off"),
    ],
)
async def test_watcher_when_pattern_cannot_be_taken_then_refused_with_the_reason(
    dial: Any, limits: dict[str, Any], pattern: str, code: int, message: str
) -> None:
    client = dial(**limits)
    await client.greet()
    refused = await watch(client, pattern)
    assert (refused.request_id, refused.error) == (1, code)
    assert message in refused.message


async def test_watcher_when_pattern_is_as_long_as_allowed_without_its_domain_then_taken(client: Any) -> None:
    assert (await watch(client, "persistent://" + "x" * 50)).watcher_id == 7


async def test_watchers_when_there_are_too_many_then_refused(client: Any, context: Any) -> None:
    client.send(*(commands.watch_topic_list(n, n, NAMESPACE, "x") for n in range(500)))
    while len(context.watches) < 500:
        await client.answers()
    assert "500 topic list watchers" in (await watch(client, watcher_id=500)).message
    await client.ask(commands.watch_topic_list_close(3, 7))
    assert (await watch(client, watcher_id=500)).watcher_id == 500
