"""The stores of a broker: metadata, logs and cursors, opened together and closed in reverse.

A standalone broker has them in its data directory, a broker of a cluster in ZooKeeper and BookKeeper.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from interpulse.broker.committer import ALONE, Layout
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.topics.schemas import SchemaStore
from interpulse.model.policies.policy_records import Persistence
from interpulse.storage.api import MetadataStore
from interpulse.storage.cursors import CursorStore
from interpulse.storage.directory_lock import DirectoryLock
from interpulse.storage.logs.topic_log import LogConfig
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.metadata.guarded import GuardedMetadata
from interpulse.storage.metadata.sqlite import SqliteMetadataStore
from interpulse.storage.meters import MetadataMeter
from interpulse.storage.segments.disk_space import DiskSpace
from interpulse.storage.segments.files import DiskFiles, Files
from interpulse.storage.segments.journal import open_log_store
from interpulse.wire.frames import FRAME_OVERHEAD

PersistenceOf = Callable[[str], Awaitable[Persistence | None]]
"""The policy of a log, by its name; None = the broker's settings apply."""


@dataclass(frozen=True, slots=True)
class Stores:
    """Metadata and logs of one broker."""

    metadata: MetadataStore
    logs: TopicLogStore
    disk_space: DiskSpace | None = None
    """The check for disk space. None: the stores need no local disk."""
    layout: Layout = ALONE
    cursors: CursorStore | None = None
    """The store of cursors. None: each cursor is a record of the metadata, in the form of the layout."""
    follow_persistence: Callable[[PersistenceOf], None] | None = None
    """Register the function that returns the placement of a log's ledgers. None: there are no bookies."""
    schemas: SchemaStore | None = None
    """The store of schemas. None: the schemas of each topic are a record of the metadata."""
    guarded: GuardedMetadata | None = None
    """The metadata for writes of logs, under locks of bundles; None unless several brokers share the stores."""
    metadata_meter: MetadataMeter | None = None
    entry_bytes_max: int | None = None
    """The largest entry from producers, in bytes; None = no limit."""

    def message_bytes_max(self, configured: int) -> int:
        """Return the largest message for producers: stores refuse a frame of more than one entry."""
        return configured if self.entry_bytes_max is None else min(configured, self.entry_bytes_max - FRAME_OVERHEAD)

    def check_disk_space(self) -> None:
        """Raise NoRoomLeft while messages cannot be stored."""
        if self.disk_space is not None:
            self.disk_space.check()


OpenStores = Callable[[BrokerConfig, AsyncExitStack], Awaitable[Stores]]
"""A function that opens the stores and pushes their closing.

Raises ConfigError, DataDirectoryInUse, DataDirectoryUnusable and MetadataError.
"""


def in_data_directory(files: Files | None = None) -> OpenStores:
    """Open the stores in ``dataDir``, and lock it. ``files`` are those of the log and of the check for disk space."""
    return partial(_open, files or DiskFiles())


async def _open(files: Files, config: BrokerConfig, opened: AsyncExitStack) -> Stores:
    directory = Path(config.data_dir)
    lock = DirectoryLock.acquire(directory)
    opened.callback(lock.release)
    disk_space = DiskSpace(directory, files, config.disk_reserve_in_mb * 1024 * 1024)
    disk_space.measure()
    metadata = await SqliteMetadataStore.open(directory / "metadata.sqlite", on_full=disk_space.ran_out)
    opened.push_async_callback(metadata.close)
    logs = await open_log_store(
        directory / "log",
        metadata,
        config=log_config(config),
        files=files,
        on_full=disk_space.ran_out,
        on_write=disk_space.takes,
    )
    opened.push_async_callback(logs.close)
    return Stores(metadata, logs, disk_space, metadata_meter=metadata.meter)


def log_config(config: BrokerConfig) -> LogConfig:
    """Return the settings of the broker's logs."""
    minute_ms, mib = 60_000, 1024 * 1024
    return LogConfig(
        ledger_entries_max=config.managed_ledger_max_entries_per_ledger,
        ledger_bytes_max=config.managed_ledger_max_size_per_ledger_mbytes * mib,
        ledger_age_min_ms=config.managed_ledger_min_ledger_rollover_time_minutes * minute_ms,
        ledger_age_max_ms=config.managed_ledger_max_ledger_rollover_time_minutes * minute_ms,
        cache_bytes_max=config.managed_ledger_cache_size_mb * mib,
    )
