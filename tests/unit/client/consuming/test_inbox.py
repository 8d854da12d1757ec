"""The inbox."""

import asyncio
from dataclasses import replace

import pytest

from interpulse.client.consuming.inbox import Inbox
from interpulse.client.messages import Message
from interpulse.model.errors import AlreadyClosed, OperationTimeout
from tests.unit.client.consuming.test_ack_tracker import message


class Owner:
    def __init__(self) -> None:
        self.taken: list[Message] = []

    def on_taken(self, message: Message) -> None:
        self.taken.append(message)


async def test_messages_come_in_order_and_their_source_hears_of_it() -> None:
    inbox, owner = Inbox(), Owner()
    inbox.put(message(1, 1), owner)
    inbox.put(message(1, 2), owner)
    assert [(await inbox.take(None)).id.entry for _ in range(2)] == [1, 2]
    assert [taken.id.entry for taken in owner.taken] == [1, 2]


async def test_taker_when_nothing_comes_then_operation_timeout() -> None:
    with pytest.raises(OperationTimeout):
        await Inbox().take(10)


async def test_taker_when_it_waits_then_gets_the_message_that_comes() -> None:
    inbox = Inbox()
    task = asyncio.create_task(inbox.take(None))
    await asyncio.sleep(0)
    inbox.put(message(1, 1), Owner())
    assert (await task).id.entry == 1


async def test_failure_is_raised_when_the_inbox_is_empty() -> None:
    inbox = Inbox()
    inbox.put(message(1, 1), Owner())
    inbox.fail(AlreadyClosed("over"))
    await inbox.take(None)
    with pytest.raises(AlreadyClosed):
        await inbox.take(None)


async def test_messages_of_one_source_when_discarded_then_the_others_stay() -> None:
    inbox, first, second = Inbox(), Owner(), Owner()
    inbox.put(message(1, 1), first)
    inbox.put(message(2, 1), second)
    assert inbox.discard(first) == 1
    assert len(inbox) == 1


async def test_batch_ends_with_the_first_limit_that_is_reached() -> None:
    inbox, owner = Inbox(), Owner()
    for number in range(6):
        inbox.put(replace(message(1, number), content=b"12345"), owner)

    async def take(messages_max: int | None, bytes_max: int, timeout_ms: int = 60_000) -> list[int]:
        batch = await inbox.take_batch(messages_max=messages_max, bytes_max=bytes_max, timeout_ms=timeout_ms)
        return [each.id.entry for each in batch]

    assert await take(2, 1000) == [0, 1]
    assert await take(None, 10) == [2, 3]
    assert await take(None, 1000, timeout_ms=10) == [4, 5]
    assert await take(None, 1000, timeout_ms=0) == []


async def test_batch_when_the_inbox_fails_then_what_is_there_comes_first() -> None:
    inbox = Inbox()
    inbox.put(message(1, 1), Owner())
    inbox.fail(AlreadyClosed("over"))
    assert len(await inbox.take_batch(messages_max=None, bytes_max=100, timeout_ms=60_000)) == 1
    with pytest.raises(AlreadyClosed):
        await inbox.take_batch(messages_max=None, bytes_max=100, timeout_ms=60_000)
