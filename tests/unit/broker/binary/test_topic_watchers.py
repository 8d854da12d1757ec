"""Clients that are told when topics come and go."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interpulse.model.errors import MetadataError, ServerError
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.hashing import topics_hash
from tests.support import commands

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
