"""What is counted of a metadata store."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpulse.storage.api import CommitConflict, Delete, Put
from interpulse.storage.metadata.sqlite import SqliteMetadataStore
from interpulse.storage.meters.metadata_meter import MetadataMeter


def counts(meter: MetadataMeter) -> dict[str, tuple[int, int]]:
    return {each: (meter.succeeded[each].count, meter.failed[each].count) for each in ("get", "put", "del")}


async def test_each_read_key_is_an_operation_unless_cached(tmp_path: Path) -> None:
    store = await SqliteMetadataStore.open(tmp_path / "metadata.sqlite")
    try:
        await store.commit([Put("/a", b"12345"), Put("/b", b"1"), Delete("/c")])
        assert (counts(store.meter), store.meter.put_bytes) == ({"get": (0, 0), "put": (2, 0), "del": (1, 0)}, 6)
        with pytest.raises(CommitConflict):
            await store.commit([Put("/a", b"12345"), Delete("/b")], {"/a": None})
        assert (counts(store.meter), store.meter.put_bytes) == ({"get": (0, 0), "put": (2, 1), "del": (1, 1)}, 6)
        before = store.meter.succeeded["get"].count
        await store.get_many(["/d", "/e"])
        await store.get("/d")
        assert store.meter.succeeded["get"].count == before + 2
    finally:
        await store.close()
