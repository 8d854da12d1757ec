from __future__ import annotations

from interpulse.storage.api import Put
from interpulse.storage.sessions import SessionState, Watches
from tests.support.memory_storage import MemoryMetadataStore


async def test_memory_when_its_session_expires_then_keys_go_before_the_report() -> None:
    store = MemoryMetadataStore()
    await store.commit([Put("/lock", b"", ephemeral=True), Put("/stays", b"")])
    told: list[object] = []
    store.watch("/", told.append)
    first = store.session.id
    store.session.on_change(lambda state: told.append((state, store.session.id == first, store.session.holds())))
    store.expire_session()
    assert told == ["/lock", (SessionState.LOST, True, False), (SessionState.CONNECTED, False, True)]
    assert await store.get("/lock") is None
    assert await store.children("/") == ["stays"]


def test_announce_when_prefixes_differ_then_each_watcher_gets_its_own() -> None:
    watches = Watches()
    heard: list[tuple[str, str]] = []
    watches.add("/a", lambda key: heard.append(("a", key)))
    watches.add("/a/b", lambda key: heard.append(("ab", key)))
    watches.announce(["/a/b/c", "/x"])
    assert heard == [("a", "/a/b/c"), ("ab", "/a/b/c")]


def test_announce_when_a_callback_cancels_and_adds_then_no_surprise() -> None:
    watches = Watches()
    heard: list[str] = []

    def once(key: str) -> None:
        heard.append(key)
        cancel()
        watches.add("/", heard.append)

    cancel = watches.add("/", once)
    watches.announce(["/1"])
    watches.announce(["/2"])
    assert heard == ["/1", "/2"]
