"""Partitions that are named, opened together, and looked for from time to time."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator

import pytest

from interpulse.client.config import ClientConfig
from interpulse.client.partitions import PartitionWatch, open_all, partition_names
from interpulse.client.session import Session
from interpulse.model.errors import MetadataError, NotAllowed, PulsarError, TopicNotFound
from interpulse.model.names import TopicName

TOPIC = TopicName.parse("persistent://public/default/t")


class OnePartition:
    """Opens, or fails to; remembers what was asked of it."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.asked: list[str] = []

    async def open(self) -> None:
        self.asked.append("open")
        if self.failure is not None:
            raise self.failure

    async def close(self) -> None:
        self.asked.append("close")


def test_names_of_partitions() -> None:
    assert partition_names(TOPIC, 0) == [TOPIC]
    assert [str(name) for name in partition_names(TOPIC, 3, first=1)] == [
        f"{TOPIC}-partition-1",
        f"{TOPIC}-partition-2",
    ]


async def test_partitions_when_all_can_be_opened_then_none_is_closed() -> None:
    several = [OnePartition(), OnePartition()]
    await open_all(several)
    assert [each.asked for each in several] == [["open"], ["open"]]


async def test_partitions_when_one_cannot_be_opened_then_all_are_closed_again() -> None:
    several = [OnePartition(), OnePartition(NotAllowed("never")), OnePartition()]
    with pytest.raises(NotAllowed, match="never"):
        await open_all(several)
    assert [each.asked for each in several] == [["open", "close"]] * 3


@pytest.fixture
async def session() -> AsyncIterator[Session]:
    made = Session(ClientConfig("pulsar://127.0.0.1:1"))
    yield made
    await made.close()


class Looking:
    """Fails in the ways given, then works; says when it was called so often."""

    def __init__(self, *failures: PulsarError) -> None:
        self.count = 0
        self._failures: Iterator[PulsarError] = iter(failures)
        self._called = asyncio.Event()

    async def __call__(self) -> None:
        self.count += 1
        self._called.set()
        for failure in self._failures:
            raise failure

    async def called(self, count: int) -> None:
        async with asyncio.timeout(60):
            while self.count < count:
                self._called.clear()
                await self._called.wait()


async def test_watch_goes_on_after_a_missing_topic_and_after_a_failure_and_logs_the_failure_only(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    looking = Looking(TopicNotFound("gone"), MetadataError("store is down"))
    with caplog.at_level(logging.WARNING):
        watch = PartitionWatch(session, looking, interval_ms=1, what="topic=t")
        await looking.called(4)
    (warning,) = caplog.messages
    assert "topic=t" in warning
    assert "store is down" in warning
    await watch.stop()


async def test_watch_when_stopped_then_nothing_of_it_runs_any_more(session: Session) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def look() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    watch = PartitionWatch(session, look, interval_ms=1, what="topic=t")
    await asyncio.wait_for(started.wait(), 5)
    await watch.stop()
    assert ended.is_set()
