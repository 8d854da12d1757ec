from __future__ import annotations

from interpulse.storage.api import Put
from interpulse.storage.memory import MemoryMetadataStore
from interpulse.storage.sessions import SessionState


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
