from __future__ import annotations

import pytest

from interpulse.storage.api import CommitConflict, Delete, Put
from interpulse.storage.memory import MemoryMetadataStore
from interpulse.storage.relocated import RelocatedMetadataStore


async def test_keys_when_relocated_then_lie_there_and_are_told_as_asked_for() -> None:
    inner = MemoryMetadataStore()
    store = RelocatedMetadataStore(inner, {"/a": "/b/c"})
    told: list[str] = []
    for prefix in ("/a", "/a/", "/ab"):
        store.watch(prefix, told.append)
    await store.commit([Put("/a/x", b"1"), Put("/ab", b"2"), Put("/a", b"3")], {"/a/x": None})
    assert [key for key, _ in await inner.scan("", limit=9)] == ["/ab", "/b/c", "/b/c/x"]
    assert told == ["/a/x", "/a/x", "/ab", "/a"]
    assert await store.children("/a") == ["x"]
    assert [key for key, _ in await store.scan("/a/", limit=9)] == ["/a/x"]
    assert await store.scan("/a/", after="/a/x", limit=9) == []
    found = await store.get_many(["/a/x", "/ab", "/a/y"])
    assert {key: each.value for key, each in found.items()} == {"/a/x": b"1", "/ab": b"2"}
    assert store.unchanged({"/a/x": found["/a/x"].version, "/a/y": None})
    with pytest.raises(CommitConflict) as conflict:
        await store.commit([Delete("/a/x")], {"/a/x": None})
    assert conflict.value.key == "/a/x"
    assert (await store.create_sequential("/a/n-")).startswith("/a/n-")
    with inner.out_of_sight():
        told.clear()
    assert told == ["/a", "/a/", "/ab"]
