"""Table view of a topic: the latest value of every key, kept up to date in memory."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from dataclasses import dataclass, field, fields
from typing import Any, Final, Generic, TypeVar, overload

from interpulse.client.checks import check_interval
from interpulse.client.closing import AsyncCloses
from interpulse.client.consuming.reader import Reader, ReaderConfig
from interpulse.client.encryption.key_reader import CryptoKeyReader
from interpulse.client.messages import Message
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo

_log = logging.getLogger(__name__)

_ASKED_AGAIN_S: Final = 1.0
"""Seconds without messages after which the end of the topic is requested again."""

V = TypeVar("V")
D = TypeVar("D")

Listener = Callable[[str, V | None], object]
"""Callback that receives a key and its new value, or None when the key is removed."""


@dataclass(frozen=True, slots=True)
class TableViewConfig:
    """Settings of one table view."""

    decode: Callable[[bytes], Any] = bytes
    """Function that makes the value of a key from the content of its latest message."""

    schema: SchemaInfo | None = None
    receiver_queue_size: int = 1000
    subscription_prefix: str = "reader"
    auto_update_partitions: bool = True
    """True: look for new partitions of a partitioned topic, and include them."""

    auto_update_partitions_interval_ms: int = 60_000
    """Interval between two searches for new partitions."""

    crypto_key_reader: CryptoKeyReader | None = field(default=None, repr=False)
    """Source of private keys; see :class:`ConsumerConfig`."""

    def __post_init__(self) -> None:
        check_interval("auto_update_partitions_interval_ms", self.auto_update_partitions_interval_ms)

    def of_reader(self) -> ReaderConfig:
        """Return the settings of the reader, which starts at the beginning and reads the compacted topic."""
        settings = {setting.name: getattr(self, setting.name) for setting in fields(self) if setting.name != "decode"}
        return ReaderConfig(read_compacted=True, **settings)


class TableView(AsyncCloses, Generic[V]):
    """Latest value of every key of a topic with all its partitions. Made by :meth:`Client.create_table_view`.

    It reads like a dictionary. A message without content removes its key; messages without a key are ignored. The table
    reflects the messages received so far; :meth:`refresh` waits for those in flight. After reading has failed, every
    method raises that failure.
    """

    def __init__(self, session: Session, topic: TopicName, config: TableViewConfig) -> None:
        self._session = session
        self._topic = topic
        self._decode = config.decode
        self._reader = Reader(session, [topic], config.of_reader())
        self._values: dict[str, V] = {}
        self._listeners: list[Listener[V]] = []
        self._came = asyncio.Event()
        self._failure: Exception | None = None
        self._following: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Read the current content of the topic. Raise the broker's refusal, or the error of ``decode``."""
        await self._reader.open()
        self._following = self._session.spawn(self._follow())
        try:
            await self._caught_up()
        except BaseException:
            await self.close()
            raise

    # ---- Reading

    @property
    def topic(self) -> str:
        return str(self._topic)

    @overload
    def get(self, key: str) -> V | None: ...

    @overload
    def get(self, key: str, default: D) -> V | D: ...

    def get(self, key: str, default: D | None = None) -> V | D | None:
        return self._table.get(key, default)

    def __getitem__(self, key: str) -> V:
        return self._table[key]

    def __contains__(self, key: object) -> bool:
        return key in self._table

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[str]:
        return iter(self.snapshot())

    def keys(self) -> KeysView[str]:
        """Return the current keys. Later messages do not change the result."""
        return self.snapshot().keys()

    def values(self) -> ValuesView[V]:
        """Return the current values. Later messages do not change the result."""
        return self.snapshot().values()

    def items(self) -> ItemsView[str, V]:
        """Return the current keys with their values. Later messages do not change the result."""
        return self.snapshot().items()

    def snapshot(self) -> dict[str, V]:
        """Return a copy of the current table."""
        return dict(self._table)

    @property
    def _table(self) -> dict[str, V]:
        if self._failure is not None:
            raise self._failure
        return self._values

    # ---- Listeners

    def listen(self, listener: Listener[V]) -> Callable[[], None]:
        """Call ``listener`` in the event loop for every change from now on. Return the function that ends this.

        An error of the listener is logged, and it still receives the next change.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def for_each(self, action: Callable[[str, V], object]) -> None:
        """Call ``listener`` with every current key and its value."""
        for key, value in self.items():
            action(key, value)

    def for_each_and_listen(self, action: Listener[V]) -> Callable[[], None]:
        """Call ``listener`` with every current key, then for every change, without missing or repeating one."""
        self.for_each(action)
        return self.listen(action)

    async def refresh(self) -> None:
        """Wait until the table includes everything that the topic contains now, new partitions included.

        Raise TopicNotFound if the topic was deleted, or the failure that ended reading.
        """
        if self._failure is not None:
            raise self._failure
        await self._reader.update_partitions()
        await self._caught_up()

    async def _caught_up(self) -> None:
        while self._failure is None and await self._reader.has_message_available():
            self._came.clear()
            if self._failure is None:
                # Compaction may remove the last message before it arrives. The topic then ends before it.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_ASKED_AGAIN_S):
                        await self._came.wait()
        if self._failure is not None:
            raise self._failure

    async def _follow(self) -> None:
        try:
            while True:
                self._take(await self._reader.read_next())
                self._came.set()
        except Exception as failure:  # noqa: BLE001  # also what decode raised; the next question to the view raises it
            if self._failure is None:
                _log.warning("table view ended topic=%s error=%s", self._topic, failure)
                self._failure = failure
            self._came.set()

    def _take(self, message: Message) -> None:
        key, content = message.key, message.content
        if key is None:
            _log.debug("message without a key ignored topic=%s id=%s", message.topic, message.id)
            return
        value = self._decode(content) if content else None
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value
        for listener in list(self._listeners):
            try:
                listener(key, value)
            except Exception:  # noqa: BLE001  # the application's: one listener must not end the view of the others
                _log.exception("listener of a table view failed topic=%s", self._topic)

    # ---- Closing

    @property
    def is_closed(self) -> bool:
        return self._reader.is_closed

    async def close(self) -> None:
        """Stop reading. Later calls fail."""
        if self._failure is None:
            self._failure = AlreadyClosed("the table view is closed")
        self._came.set()
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        await self._reader.close()
