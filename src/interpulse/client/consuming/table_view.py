"""A topic as a table: the newest value of every key, kept up to date in memory."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from dataclasses import dataclass, field
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

__all__ = ["TableView", "TableViewConfig"]

_log = logging.getLogger(__name__)

_ASKED_AGAIN_S: Final = 1.0
"""So long nothing comes before the end of the topic is asked for again."""

V = TypeVar("V")
D = TypeVar("D")

Listener = Callable[[str, V | None], object]
"""Gets a key and its new value, None when the key is removed."""


@dataclass(frozen=True, slots=True)
class TableViewConfig:
    """Settings of one table view."""

    decode: Callable[[bytes], Any] = bytes
    """Makes the value of a key from the content of its newest message."""

    schema: SchemaInfo | None = None
    receiver_queue_size: int = 1000
    subscription_prefix: str = "reader"
    auto_update_partitions: bool = True
    """A view of a partitioned topic looks for new partitions, and takes them in."""

    auto_update_partitions_interval_ms: int = 60_000
    """How often it looks."""

    crypto_key_reader: CryptoKeyReader | None = field(default=None, repr=False)
    """Gives the private keys of encrypted messages, as for consumers."""

    def __post_init__(self) -> None:
        check_interval("auto_update_partitions_interval_ms", self.auto_update_partitions_interval_ms)

    def of_reader(self) -> ReaderConfig:
        """From the beginning, as compaction left it: nothing else is needed of what was there before."""
        return ReaderConfig(
            schema=self.schema,
            receiver_queue_size=self.receiver_queue_size,
            subscription_prefix=self.subscription_prefix,
            auto_update_partitions=self.auto_update_partitions,
            auto_update_partitions_interval_ms=self.auto_update_partitions_interval_ms,
            read_compacted=True,
            crypto_key_reader=self.crypto_key_reader,
        )


class TableView(AsyncCloses, Generic[V]):
    """The newest value of every key of a topic or all its partitions. Made by :meth:`Client.create_table_view`.

    It reads like a dictionary from keys to values. A message without content removes its key; messages without a key
    are left out. What was read is that of the last message that came: :meth:`refresh` waits for those under way.
    When reading the topic has failed, every question raises that failure.
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
        """Read what the topic holds now. Raises what a broker refuses, and what ``decode`` raises."""
        await self._reader.open()
        self._following = self._session.spawn(self._follow())
        try:
            await self._caught_up()
        except BaseException:
            await self.close()
            raise

    # ---- Reading it

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
        """As they are now; later messages do not change what was given."""
        return self.snapshot().keys()

    def values(self) -> ValuesView[V]:
        """As they are now."""
        return self.snapshot().values()

    def items(self) -> ItemsView[str, V]:
        """As they are now."""
        return self.snapshot().items()

    def snapshot(self) -> dict[str, V]:
        """The table as it is now."""
        return dict(self._table)

    @property
    def _table(self) -> dict[str, V]:
        if self._failure is not None:
            raise self._failure
        return self._values

    # ---- Following it

    def listen(self, listener: Listener[V]) -> Callable[[], None]:
        """Call with every key that changes from now on, in the event loop; gives the function that ends it.

        The error of a listener is logged, and the listener gets the next change all the same.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def for_each(self, action: Callable[[str, V], object]) -> None:
        """Call with every key there is now."""
        for key, value in self.items():
            action(key, value)

    def for_each_and_listen(self, action: Listener[V]) -> Callable[[], None]:
        """Both, without a change that is missed or met twice."""
        self.for_each(action)
        return self.listen(action)

    async def refresh(self) -> None:
        """Return when everything is taken in that the topic holds now, in new partitions too.

        Raises TopicNotFound if the topic is gone, and whatever ended the reading.
        """
        if self._failure is not None:
            raise self._failure
        await self._reader.update_partitions()
        await self._caught_up()

    async def _caught_up(self) -> None:
        while self._failure is None and await self._reader.has_message_available():
            self._came.clear()
            if self._failure is None:
                # Compaction may take the last message away before it comes: then the topic ends before it.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._came.wait(), _ASKED_AGAIN_S)
        if self._failure is not None:
            raise self._failure

    async def _follow(self) -> None:
        try:
            while True:
                self._take(await self._reader.read_next())
                self._came.set()
        except Exception as failure:  # noqa: BLE001  # also what decode raised; the next question to the view raises it
            self._fail(failure)

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

    def _fail(self, failure: Exception) -> None:
        if self._failure is None:
            _log.warning("table view ended topic=%s error=%s", self._topic, failure)
            self._failure = failure
        self._came.set()

    # ---- The end

    @property
    def is_closed(self) -> bool:
        return self._reader.is_closed

    async def close(self) -> None:
        """Stop reading. The view cannot be asked any more."""
        if self._failure is None:
            self._failure = AlreadyClosed("the table view is closed")
        self._came.set()
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        await self._reader.close()
