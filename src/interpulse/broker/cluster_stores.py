"""The stores of a cluster: metadata in ZooKeeper, entries and cursors on bookies, all in Pulsar's own layout."""

from __future__ import annotations

import logging
import re
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from interpulse.broker.committer import IN_CLUSTER
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.stores import Stores, log_config
from interpulse.broker.topics.ledger_schemas import LedgerSchemas
from interpulse.serving.settings import ConfigError
from interpulse.storage.api import MetadataUnavailable
from interpulse.storage.bookkeeper.client import BookKeeperClient, BookKeeperConfig
from interpulse.storage.bookkeeper.errors import BookKeeperError
from interpulse.storage.bookkeeper.journal import BookKeeperJournal
from interpulse.storage.bookkeeper.packets import DigestType
from interpulse.storage.bookkeeper.records import LogQuorums, Quorum
from interpulse.storage.directory_lock import DirectoryLock
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.managed_ledger.cursor_ledgers import LedgerCursors
from interpulse.storage.managed_ledger.topic_codec import PulsarCompacted
from interpulse.storage.metadata.guarded import GuardedMetadata
from interpulse.storage.metadata.session_bounded import SessionBoundedMetadata
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.link import LinkConfig
from interpulse.storage.zookeeper.session import Servers, parse_servers
from interpulse.storage.zookeeper.store import ZooKeeperMetadataStore
from interpulse.wire.frames import MESSAGE_BYTES_MAX

log = logging.getLogger(__name__)

_OWN_METADATA: Final = "metadata.sqlite"
_ADDED_BYTES_MAX: Final = 128  # broker entry metadata, or the prefix of compacted entries


async def in_cluster(config: BrokerConfig, opened: AsyncExitStack) -> Stores:
    """Lock ``dataDir``, and open the stores that ``metadataStoreUrl`` names. See `interpulse.broker.stores`."""
    check_settings(config)
    lock = DirectoryLock.acquire(Path(config.data_dir))
    opened.callback(lock.release)
    return await open_cluster_stores(config, opened)


async def open_cluster_stores(config: BrokerConfig, opened: AsyncExitStack) -> Stores:
    """Open the stores without a data directory; nothing of them is on this machine's disk. Raise MetadataError."""
    link = LinkConfig(config.session_timeout_ms, float(config.metadata_store_operation_timeout_seconds))
    client = await ZooKeeperClient.connect(config.metadata_store_url, link)
    opened.push_async_callback(client.close)
    metadata = await ZooKeeperMetadataStore.open(client)
    opened.push_async_callback(metadata.close)
    bookkeeper = BookKeeperClient(client, BookKeeperConfig(DigestType[config.managed_ledger_digest_type]))
    opened.push_async_callback(bookkeeper.close)
    try:
        await bookkeeper.check()
    except BookKeeperError as error:
        raise MetadataUnavailable(str(error)) from error
    quorum = _quorum(config)
    quorums = LogQuorums(quorum)
    journal = BookKeeperJournal(bookkeeper, quorums)
    guarded = GuardedMetadata(metadata)
    logs = TopicLogStore(
        guarded, journal, log_config(config), codec=IN_CLUSTER.topic_records, compacted_form=PulsarCompacted()
    )
    opened.push_async_callback(logs.close)
    cursors = LedgerCursors(guarded, bookkeeper, quorums, is_guarded=guarded.is_bound)
    return Stores(
        metadata,
        logs,
        guarded=guarded,
        layout=IN_CLUSTER,
        cursors=cursors,
        follow_persistence=quorums.follow,
        schemas=LedgerSchemas(SessionBoundedMetadata(metadata), bookkeeper, quorum),
        metadata_meter=metadata.meter,
        entry_bytes_max=bookkeeper.entry_bytes_max - _ADDED_BYTES_MAX,
    )


def check_settings(config: BrokerConfig) -> None:
    """Check settings that a broker of a cluster cannot start with. Raise ConfigError with every problem."""
    problems = _problems_of_addresses(config)
    quorum = _quorum(config)
    if not quorum.possible:
        problems.append(
            f"managedLedgerDefaultEnsembleSize={quorum.ensemble}, managedLedgerDefaultWriteQuorum={quorum.write} and "
            f"managedLedgerDefaultAckQuorum={quorum.ack} are impossible together: each may be at most the one before"
        )
    if config.max_message_size > MESSAGE_BYTES_MAX:
        problems.append(
            f"maxMessageSize={config.max_message_size}: bookies take frames of {MESSAGE_BYTES_MAX} bytes, so a broker "
            "of a cluster takes no larger messages; leave it out, and let producers send larger ones in chunks"
        )
    if (Path(config.data_dir) / _OWN_METADATA).exists():
        problems.append(
            f"dataDir={config.data_dir} holds the metadata and messages of a standalone broker: name an empty "
            "directory and copy them with `interpulse cluster import`, or start it with `interpulse standalone`"
        )
    if problems:
        raise ConfigError(*problems)


def _problems_of_addresses(config: BrokerConfig) -> list[str]:
    url = config.metadata_store_url
    if not url.startswith("zk:"):
        return [
            f"metadataStoreUrl={url}: a broker of a cluster keeps its metadata in ZooKeeper: "
            "metadataStoreUrl=zk:host1:2181,host2:2181. Without a cluster start `interpulse standalone`"
        ]
    try:
        servers = parse_servers(url)
    except ValueError as error:
        return [f"metadataStoreUrl: {error}"]
    places = {
        "configurationMetadataStoreUrl": config.configuration_metadata_store_url,
        "bookkeeperMetadataServiceUri": config.bookkeeper_metadata_service_uri,
    }
    return [
        f"{key}={place}: another ZooKeeper than that of metadataStoreUrl ({servers}) is not supported; leave it empty"
        for key, place in places.items()
        if place and not _is_same(place, servers)
    ]


def _is_same(place: str, servers: Servers) -> bool:
    """Return True if an address, in any form of Pulsar's files, names these servers."""
    text = re.sub(r"^(metadata-store:)?(zk(\+\w+)?:)?(//)?", "", place).replace(";", ",")
    try:
        named = parse_servers(text)
    except ValueError:
        return False
    return set(named.servers) == set(servers.servers) and named.chroot in (servers.chroot, f"{servers.chroot}/ledgers")


def _quorum(config: BrokerConfig) -> Quorum:
    return Quorum(
        config.managed_ledger_default_ensemble_size,
        config.managed_ledger_default_write_quorum,
        config.managed_ledger_default_ack_quorum,
    )
