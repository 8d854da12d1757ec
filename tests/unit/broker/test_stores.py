"""The stores in a data directory: opened, closed in reverse, and belonging to one process at a time."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.stores import Stores, in_data_directory
from interpulse.model.errors import NoRoomLeft
from interpulse.storage.api import DataDirectoryInUse, Put
from tests.support.memory_storage import MemoryMetadataStore, memory_log_store


async def test_stores_when_opened_again_then_hold_what_was_stored(tmp_path: Path) -> None:
    config = BrokerConfig(data_dir=str(tmp_path))
    async with AsyncExitStack() as opened:
        stores = await in_data_directory()(config, opened)
        await stores.metadata.commit([Put("/x", b"1")])
        with pytest.raises(DataDirectoryInUse):
            await in_data_directory()(config, opened)
    async with AsyncExitStack() as opened:
        found = await (await in_data_directory()(config, opened)).metadata.get("/x")
        assert found is not None
        assert found.value == b"1"


async def test_stores_when_the_disk_is_full_then_refuse_messages(tmp_path: Path) -> None:
    async with AsyncExitStack() as opened:
        stores = await in_data_directory()(BrokerConfig(data_dir=str(tmp_path)), opened)
        stores.check_disk_space()
        assert stores.disk_space is not None
        stores.disk_space.ran_out("nothing is left")
        with pytest.raises(NoRoomLeft, match="nothing is left"):
            stores.check_disk_space()


async def test_stores_when_they_need_no_disk_then_always_have_room() -> None:
    metadata = MemoryMetadataStore()
    Stores(metadata, memory_log_store(metadata)).check_disk_space()
