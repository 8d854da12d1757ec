"""Asyncio client for Apache Pulsar and Interpulse brokers.

``Client`` speaks the binary protocol, ``AdminClient`` the REST API. ``interpulse.sync`` offers both to programs without
an event loop. ``lookup`` finds topics, ``producing`` sends messages, ``consuming`` receives them, ``admin`` makes REST
calls, and ``transport`` holds the connections.
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
    from interpulse.client.messages import Message, OutgoingMessage
    from interpulse.client.producing.entry_sender import EntrySender
    from interpulse.client.producing.partition_producer import ProducerConfig
    from interpulse.client.producing.producer import Producer
    from interpulse.client.producing.unconfirmed import Receipt
    from interpulse.client.tls import TlsOptions
    from interpulse.wire.ids import deserialize_message_id, serialize_message_id

__all__ = [
    "AdminClient",
    "BrokerAddress",
    "Client",
    "ClientConfig",
    "Consumer",
    "ConsumerConfig",
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
    "TableView",
    "TableViewConfig",
    "TlsOptions",
    "deserialize_message_id",
    "serialize_message_id",
]

_HOMES: Final = {
    "AdminClient": "interpulse.client.admin.admin_client",
    "BrokerAddress": "interpulse.client.config",
    "Client": "interpulse.client.client",
    "ClientConfig": "interpulse.client.config",
    "Consumer": "interpulse.client.consuming.consumer",
    "ConsumerConfig": "interpulse.client.consuming.consumer_config",
    "Credentials": "interpulse.client.credentials",
    "CryptoKeyReader": "interpulse.client.encryption.key_reader",
    "DeadLetterPolicy": "interpulse.client.consuming.consumer_config",
    "DefaultCryptoKeyReader": "interpulse.client.encryption.key_reader",
    "EncryptionKeyInfo": "interpulse.client.encryption.key_reader",
    "Entry": "interpulse.client.consuming.entry_reader",
    "EntryReader": "interpulse.client.consuming.entry_reader",
    "EntrySender": "interpulse.client.producing.entry_sender",
    "KeySharedPolicy": "interpulse.client.consuming.consumer_config",
    "Message": "interpulse.client.messages",
    "OutgoingMessage": "interpulse.client.messages",
    "Producer": "interpulse.client.producing.producer",
    "ProducerConfig": "interpulse.client.producing.partition_producer",
    "Reader": "interpulse.client.consuming.reader",
    "ReaderConfig": "interpulse.client.consuming.reader",
    "Receipt": "interpulse.client.producing.unconfirmed",
    "RedeliveryBackoff": "interpulse.client.consuming.consumer_config",
    "TableView": "interpulse.client.consuming.table_view",
    "TableViewConfig": "interpulse.client.consuming.table_view",
    "TlsOptions": "interpulse.client.tls",
    "deserialize_message_id": "interpulse.wire.ids",
    "serialize_message_id": "interpulse.wire.ids",
}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use. Most programs need few of them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
