"""What is read for a question does not wait for a store whose session is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from interpulse.eager_start import start_eagerly
from interpulse.model.errors import ServerError
from interpulse.storage.api import Change, MetadataUnavailable, Put, Versioned
from interpulse.storage.metadata.session_bounded import (
    SessionBoundedMetadata,
    SessionLost,
    leave_if_session_lost,
    until_session_lost,
    with_waiting_reads,
)
from tests.support.memory_storage import MemoryMetadataStore


class Silent(MemoryMetadataStore):
    """Answers when `answers` is set; a read that it remembers needs no answer."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()
        self.remembered: set[str] = set()
        self.asked = 0

    async def _answer(self) -> None:
        self.asked += 1
        await self.answers.wait()

    async def get(self, key: str) -> Versioned | None:
        if key not in self.remembered:
            await self._answer()
        return await super().get(key)

    async def get_many(self, keys: Sequence[str]) -> dict[str, Versioned]:
        await self._answer()
        return await super().get_many(keys)

    async def children(self, key: str) -> list[str]:
        await self._answer()
        return await super().children(key)

    async def scan(self, prefix: str, *, after: str = "", limit: int) -> list[tuple[str, Versioned]]:
        await self._answer()
        return await super().scan(prefix, after=after, limit=limit)

    async def sync(self, key: str) -> None:
        await self._answer()
        await super().sync(key)

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        await self._answer()
        await super().commit(changes, expect)


@pytest.fixture
async def store() -> Silent:
    return Silent()


@pytest.fixture
async def bounded(store: Silent) -> SessionBoundedMetadata:
    return SessionBoundedMetadata(store)


READS: dict[str, Callable[[SessionBoundedMetadata], Awaitable[object]]] = {
    "get": lambda metadata: metadata.get("/a"),
    "get_many": lambda metadata: metadata.get_many(["/a", "/b"]),
    "children": lambda metadata: metadata.children("/"),
    "scan": lambda metadata: metadata.scan("/", limit=10),
    "sync": lambda metadata: metadata.sync("/a"),
}


@pytest.mark.parametrize("name", READS)
async def test_read_when_the_session_is_lost_meanwhile_then_ends_as_not_ready(
    store: Silent, bounded: SessionBoundedMetadata, name: str
) -> None:
    reading = asyncio.ensure_future(READS[name](bounded))
    await asyncio.sleep(0)
    assert store.asked == 1
    assert not reading.done()
    store.session.lose()
    with pytest.raises(SessionLost, match="metadata store does not answer") as refused:
        await reading
    assert (refused.value.wire_code, refused.value.http_status) == (ServerError.ServiceNotReady, 503)
    assert refused.value.retriable


@pytest.mark.parametrize("name", READS)
async def test_read_when_the_session_is_lost_already_then_is_refused_at_once(
    store: Silent, bounded: SessionBoundedMetadata, name: str
) -> None:
    store.session.lose()
    with pytest.raises(SessionLost):
        await READS[name](bounded)


async def test_read_when_refused_at_once_then_it_waits_no_longer(store: Silent) -> None:
    answer = asyncio.get_running_loop().create_future()

    async def read() -> None:
        await answer

    store.session.lose()
    with pytest.raises(SessionLost):
        await until_session_lost(store.session, read())
    assert answer.cancelled()


async def test_read_when_its_caller_goes_away_while_it_is_refused_then_it_waits_no_longer(store: Silent) -> None:
    answer = asyncio.get_running_loop().create_future()

    async def read() -> None:
        await answer

    store.session.lose()
    reading = asyncio.ensure_future(until_session_lost(store.session, read()))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await asyncio.wait([answer], timeout=5)
    assert answer.cancelled()


async def test_read_when_cached_then_answered_after_the_session_is_lost(
    store: Silent, bounded: SessionBoundedMetadata
) -> None:
    store.answers.set()
    await bounded.commit([Put("/a", b"1")])
    store.answers.clear()
    store.remembered = {"/a"}
    store.session.lose()
    for _ in range(2):
        found = await bounded.get("/a")
        assert found is not None
        assert found.value == b"1"


async def test_read_when_answered_in_time_then_a_later_loss_changes_nothing(
    store: Silent, bounded: SessionBoundedMetadata
) -> None:
    reading = asyncio.ensure_future(bounded.get("/a"))
    await asyncio.sleep(0)
    store.answers.set()
    assert await reading is None
    store.session.lose()
    await asyncio.sleep(0)
    store.session.resume(store.session.id)
    assert await bounded.children("/") == []


async def test_commit_when_the_session_is_lost_then_waits_for_the_store(
    store: Silent, bounded: SessionBoundedMetadata
) -> None:
    """A commit about no owned topic is done when the servers answer again.

    Source: docs/reference/cluster-protocol.md#session-deadline.
    """
    committing = asyncio.ensure_future(bounded.commit([Put("/a", b"1")]))
    await asyncio.sleep(0)
    store.session.lose()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not committing.done()
    store.session.resume(store.session.id)
    store.answers.set()
    await committing
    assert await bounded.get("/a")


async def test_read_when_it_fails_then_the_error_is_raised(store: Silent, bounded: SessionBoundedMetadata) -> None:
    store.answers.set()
    await store.close()
    with pytest.raises(MetadataUnavailable, match="closed"):
        await bounded.get("/a")


async def test_read_when_it_fails_in_the_turn_of_the_loss_then_ends_as_not_ready(store: Silent) -> None:
    failure = asyncio.get_running_loop().create_future()

    async def read() -> None:
        await failure

    reading = asyncio.ensure_future(until_session_lost(store.session, read()))
    await asyncio.sleep(0)
    failure.set_exception(MetadataUnavailable("no server answered"))
    await asyncio.sleep(0)
    store.session.lose()
    with pytest.raises(SessionLost):
        await reading


async def test_read_when_cancelled_then_the_store_is_not_waited_for(
    store: Silent, bounded: SessionBoundedMetadata
) -> None:
    ended = asyncio.Event()

    async def wait() -> None:
        try:
            await store.answers.wait()
        finally:
            ended.set()

    task = asyncio.ensure_future(until_session_lost(store.session, wait()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_read_when_begun_without_a_task_then_ends_nevertheless(
    store: Silent, bounded: SessionBoundedMetadata
) -> None:
    """As commands are whose answers are likely to be in memory."""
    left = start_eagerly(bounded.get("/a"))  # type: ignore[arg-type]
    assert left is not None
    reading = asyncio.ensure_future(left)
    store.session.lose()
    with pytest.raises(SessionLost):
        await reading


@pytest.mark.parametrize("name", READS)
async def test_read_when_part_of_cleanup_then_waits_for_the_store(
    store: Silent, bounded: SessionBoundedMetadata, name: str
) -> None:
    async def read() -> object:
        return await READS[name](bounded)

    reading = asyncio.ensure_future(with_waiting_reads(read()))
    await asyncio.sleep(0)
    store.session.lose()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not reading.done()
    store.answers.set()
    await reading
    store.answers.clear()
    with pytest.raises(SessionLost):  # whoever asks next does not wait
        await READS[name](bounded)


async def test_read_when_the_session_is_lost_and_back_in_one_turn_then_waits_on(
    store: Silent, bounded: SessionBoundedMetadata
) -> None:
    """As after a pause of the process: the first answer tells both."""
    reading = asyncio.ensure_future(bounded.get("/a"))
    await asyncio.sleep(0)
    store.session.lose()
    store.session.resume(store.session.id)
    for _ in range(3):
        await asyncio.sleep(0)
    assert not reading.done()
    store.answers.set()
    assert await reading is None


async def test_cleanup_when_cancelled_then_its_work_is_cancelled(
    store: Silent, bounded: SessionBoundedMetadata
) -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await bounded.get("/a")
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    task = asyncio.ensure_future(with_waiting_reads(work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cancelled"]


async def test_work_of_a_watch_when_the_session_is_lost_then_its_rest_is_left(
    store: Silent, bounded: SessionBoundedMetadata
) -> None:
    done: list[str] = []

    async def work() -> None:
        done.append("begun")
        await bounded.get("/a")
        done.append("ended")

    working = asyncio.ensure_future(leave_if_session_lost(work()))
    await asyncio.sleep(0)
    store.session.lose()
    await working
    store.answers.set()
    store.session.resume(store.session.id)
    await leave_if_session_lost(work())
    assert done == ["begun", "begun", "ended"]


async def test_work_of_a_watch_when_it_fails_otherwise_then_the_error_is_raised(
    store: Silent, bounded: SessionBoundedMetadata
) -> None:
    async def work() -> None:
        await bounded.get("/a")

    store.answers.set()
    await store.close()
    with pytest.raises(MetadataUnavailable, match="closed"):
        await leave_if_session_lost(work())
