"""Asyncio client for Apache Pulsar and Interpulse brokers.

``Client`` speaks the binary protocol, ``AdminClient`` the REST API. ``interpulse.sync`` offers both to programs without
an event loop. ``lookup`` finds topics, ``producing`` sends messages, ``consuming`` receives them, ``admin`` makes REST
calls, ``failover`` chooses among several clusters, and ``transport`` holds the connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient
    from interpulse.client.client import Client
    from interpulse.client.config import BrokerAddress, ClientConfig
    from interpulse.client.consuming.consumer import Consumer
    from interpulse.client.consuming.consumer_config import (
        ConsumerConfig,
        DeadLetterPolicy,
        KeySharedPolicy,
        RedeliveryBackoff,
    )
    from interpulse.client.consuming.entry_reader import Entry, EntryReader
    from interpulse.client.consuming.reader import Reader, ReaderConfig
    from interpulse.client.consuming.table_view import TableView, TableViewConfig
    from interpulse.client.credentials import Credentials
    from interpulse.client.encryption.key_reader import CryptoKeyReader, DefaultCryptoKeyReader, EncryptionKeyInfo
    from interpulse.client.failover.auto import AutoFailover
    from interpulse.client.failover.controlled import ControlledFailover
    from interpulse.client.failover.sites import Site, SiteChange
    from interpulse.client.messages import Message, OutgoingMessage
    from interpulse.client.producing.entry_sender import EntrySender
    from interpulse.client.producing.partition_producer import ProducerConfig
    from interpulse.client.producing.producer import Producer
    from interpulse.client.producing.unconfirmed import Receipt
    from interpulse.client.tls import TlsOptions
    from interpulse.wire.ids import deserialize_message_id, serialize_message_id

__all__ = [
    "AdminClient",
    "AutoFailover",
    "BrokerAddress",
    "Client",
    "ClientConfig",
    "Consumer",
    "ConsumerConfig",
    "ControlledFailover",
    "Credentials",
    "CryptoKeyReader",
    "DeadLetterPolicy",
    "DefaultCryptoKeyReader",
    "EncryptionKeyInfo",
    "Entry",
    "EntryReader",
    "EntrySender",
    "KeySharedPolicy",
    "Message",
    "OutgoingMessage",
    "Producer",
    "ProducerConfig",
    "Reader",
    "ReaderConfig",
    "Receipt",
    "RedeliveryBackoff",
    "Site",
    "SiteChange",
    "TableView",
    "TableViewConfig",
    "TlsOptions",
    "deserialize_message_id",
    "serialize_message_id",
]

_NAMES: Final = {
    "interpulse.client.admin.admin_client": ("AdminClient",),
    "interpulse.client.config": ("BrokerAddress", "ClientConfig"),
    "interpulse.client.client": ("Client",),
    "interpulse.client.consuming.consumer": ("Consumer",),
    "interpulse.client.consuming.consumer_config": (
        "ConsumerConfig",
        "DeadLetterPolicy",
        "KeySharedPolicy",
        "RedeliveryBackoff",
    ),
    "interpulse.client.credentials": ("Credentials",),
    "interpulse.client.encryption.key_reader": ("CryptoKeyReader", "DefaultCryptoKeyReader", "EncryptionKeyInfo"),
    "interpulse.client.consuming.entry_reader": ("Entry", "EntryReader"),
    "interpulse.client.producing.entry_sender": ("EntrySender",),
    "interpulse.client.failover.auto": ("AutoFailover",),
    "interpulse.client.failover.controlled": ("ControlledFailover",),
    "interpulse.client.failover.sites": ("Site", "SiteChange"),
    "interpulse.client.messages": ("Message", "OutgoingMessage"),
    "interpulse.client.producing.producer": ("Producer",),
    "interpulse.client.producing.partition_producer": ("ProducerConfig",),
    "interpulse.client.consuming.reader": ("Reader", "ReaderConfig"),
    "interpulse.client.producing.unconfirmed": ("Receipt",),
    "interpulse.client.consuming.table_view": ("TableView", "TableViewConfig"),
    "interpulse.client.tls": ("TlsOptions",),
    "interpulse.wire.ids": ("deserialize_message_id", "serialize_message_id"),
}
_HOMES: Final = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use. Most programs need few of them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
