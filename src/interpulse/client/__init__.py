"""The asyncio client of Apache Pulsar and Interpulse brokers.

``Client`` talks the binary protocol, ``AdminClient`` the REST interface; ``interpulse.sync`` has both for programs
without an event loop. Topics are found in ``lookup``, messages sent in ``producing`` and received in ``consuming``;
REST calls are made in ``admin``, and connections in ``transport``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from interpulse.client.producing.send_queue import Receipt
from interpulse.client.tls import TlsOptions
from interpulse.wire.ids import deserialize_message_id, serialize_message_id

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

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

_LAZY = {"AdminClient": "interpulse.client.admin.admin_client"}


def __getattr__(name: str) -> Any:
    """Names that need the HTTP library are loaded at their first use."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
