"""What messages say last of each topic."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from interpulse.broker.topics.change_events.change_events import Levels, read_levels
from interpulse.broker.topics.change_events.event_codec import encode_policies, event_key
from interpulse.client.client import Client
from interpulse.client.consuming.reader import Reader
from interpulse.model.errors import OperationTimeout
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import TopicPolicies

A, B = TopicName.parse("public/e/a"), TopicName.parse("public/e/b")


class Events:
    """A reader and its client, of messages given as key and content; the last of them may have been compacted away."""

    def __init__(self, *messages: tuple[str, bytes | None], compacted: int = 0, version: bytes | None = None) -> None:
        self._messages = [
            SimpleNamespace(key=key, content=content, id=MessageId(1, entry), topic="events", schema_version=version)
            for entry, (key, content) in enumerate(messages)
        ]
        self._compacted = compacted

    async def has_message_available(self) -> bool:
        return bool(self._messages or self._compacted)

    async def read_next(self, timeout_ms: int) -> Any:
        if not self._messages:
            raise OperationTimeout("nothing came")
        return self._messages.pop(0)

    async def get_schema(self, topic: str, version: bytes) -> None:
        return None

    async def levels(self) -> tuple[Levels, Position]:
        return await read_levels(cast(Client, self), cast(Reader, self))


def told(topic: TopicName, producers: int | None, *, everywhere: bool = False) -> tuple[str, bytes | None]:
    content = None
    if producers is not None:
        policies = TopicPolicies(max_producers=producers)
        content = encode_policies(topic, policies, everywhere=everywhere, cluster="standalone")
    return event_key(topic, everywhere=everywhere), content


async def test_levels_when_told_several_times_then_the_last_counts_of_each_topic_and_level() -> None:
    events = Events(told(A, 1), told(A, 2), told(A, 3, everywhere=True), told(B, 4), told(B, None))
    levels, upto = await events.levels()
    assert levels == {
        (A, False): (TopicPolicies(max_producers=2), Position(1, 1)),
        (A, True): (TopicPolicies(max_producers=3), Position(1, 2)),
        (B, False): (None, Position(1, 4)),
    }
    assert upto == Position(1, 4)


async def test_levels_when_the_last_message_was_compacted_away_then_end_with_the_one_before() -> None:
    levels, upto = await Events(told(A, 1), compacted=1).levels()
    assert (set(levels), upto) == ({(A, False)}, Position(1, 0))
    assert await Events().levels() == ({}, EARLIEST)


@pytest.mark.parametrize("key", ["persistent://a/b", ""])
async def test_levels_when_a_message_is_not_understood_then_is_logged_and_left_out(
    key: str, caplog: pytest.LogCaptureFixture
) -> None:
    levels, upto = await Events((key, None), told(A, 1)).levels()
    assert (set(levels), upto) == ({(A, False)}, Position(1, 1))
    assert [record.getMessage().partition(" topic=")[0] for record in caplog.records] == ["change event invalid"]


async def test_levels_when_its_schema_is_not_there_then_the_message_is_logged_and_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert (await Events(told(A, 1), version=b"\7").levels())[0] == {}
    assert "its schema version 07 does not exist" in caplog.text
