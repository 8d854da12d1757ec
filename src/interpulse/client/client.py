"""The client: it makes producers, consumers, readers and table views."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from interpulse.client.checks import check_type, topic_name, topic_names
from interpulse.client.closing import AsyncCloses
from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.consuming.consumer import Consumer
from interpulse.client.consuming.consumer_config import ConsumerConfig
from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.client.consuming.reader import Reader, ReaderConfig
from interpulse.client.consuming.table_view import TableView, TableViewConfig
from interpulse.client.consuming.topics_pattern import TopicsPattern
from interpulse.client.lookup.lookup import TopicMode
from interpulse.client.lookup.topic_schemas import VersionedSchema, store_schema
from interpulse.client.outages import Outages
from interpulse.client.partitions import partition_names
from interpulse.client.producing.entry_sender import EntrySender
from interpulse.client.producing.partition_producer import ProducerConfig
from interpulse.client.producing.producer import Producer
from interpulse.client.session import Session
from interpulse.model.errors import InvalidRequest, InvalidTopicName, PulsarError
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.schemas import SchemaInfo

__all__ = ["Client", "asked_to_create"]


def asked_to_create(create: bool | None) -> bool:
    """Whether ``get_partitions_for_topic`` may create the topic; None is deprecated and means True."""
    if create is None:
        warnings.warn(
            "get_partitions_for_topic(topic) may create the topic: say create=False, or create=True if that is meant",
            DeprecationWarning,
            stacklevel=3,
        )
    return create is not False


class Client(AsyncCloses):
    """A connection to one cluster, shared by everything it makes.

    ::

        async with Client("pulsar://127.0.0.1:6650") as client:
            async with await client.create_producer("flights") as producer:
                await producer.send(b"LH400", key="FRA")

    ``options`` are those of :class:`ClientConfig`. Nothing is opened before the first call; all calls belong to one
    event loop. Failures are classes of ``interpulse.model.errors``. ``outages`` logs that the cluster does not answer,
    and that it does again.
    """

    def __init__(self, service_url: str, *, outages: Outages | None = None, **options: Any) -> None:
        self._config = ClientConfig(service_url, **options)
        self._outages = outages
        self._opened: Session | None = None
        self._made: list[Producer | Consumer | Reader | TableView[Any]] = []

    @property
    def config(self) -> ClientConfig:
        return self._config

    @property
    def session(self) -> Session:
        """Connections and lookups of this client, for code that works on entries. Needs a running event loop."""
        if self._opened is None:
            self._opened = Session(self._config, self._outages)
        return self._opened

    async def create_producer(self, topic: str, **options: Any) -> Producer:
        """A producer, registered with the broker of every partition. ``options``: :class:`ProducerConfig`."""
        producer = Producer(self.session, topic_name(topic), ProducerConfig(**options))
        await producer.open()
        self._keep(producer)
        return producer

    async def subscribe(
        self, topics: str | Sequence[str] | re.Pattern[str], subscription: str, **options: Any
    ) -> Consumer:
        """A consumer of one or several topics, or of all topics of a namespace that match a compiled expression, now
        and later: ``re.compile("public/default/flights-.*")``. ``options``: :class:`ConsumerConfig`."""
        wanted = TopicsPattern.of(topics) if isinstance(topics, re.Pattern) else topic_names(topics)
        if not wanted or not subscription:
            raise InvalidRequest("a consumer needs at least one topic and the name of its subscription")
        check_type("subscription", subscription, str)
        consumer = Consumer(self.session, wanted, subscription, ConsumerConfig(**options))
        await consumer.open()
        self._keep(consumer)
        return consumer

    async def create_reader(
        self, topics: str | Sequence[str], start: MessageId | Position = EARLIEST, **options: Any
    ) -> Reader:
        """A reader of one or several topics from ``start`` (EARLIEST, LATEST or a message) on. ``options``:
        :class:`ReaderConfig`."""
        names = topic_names(topics)
        if not names:
            raise InvalidRequest("a reader needs at least one topic")
        reader = Reader(self.session, names, ReaderConfig(start=start, **options))
        await reader.open()
        self._keep(reader)
        return reader

    async def create_table_view(self, topic: str, **options: Any) -> TableView[Any]:
        """The newest value of every key of a topic, held up to date. ``options``: :class:`TableViewConfig`."""
        view = TableView[Any](self.session, topic_name(topic), TableViewConfig(**options))
        await view.open()
        self._keep(view)
        return view

    def _keep(self, made: Producer | Consumer | Reader | TableView[Any]) -> None:
        """Remember what has to be closed with the client; forget what was closed before."""
        self._made = [*(other for other in self._made if not other.is_closed), made]

    async def create_entry_reader(
        self, topic: str, *, after: Position, upto: Position | None = None, **options: Any
    ) -> EntryReader:
        """A reader of one topic or partition, entry by entry. ``options``: those of :class:`EntryReader`."""
        reader = EntryReader(self.session, TopicName.parse(topic), after=after, upto=upto, **options)
        await reader.open()
        return reader

    async def create_entry_sender(self, topic: str, name: str, **options: Any) -> EntrySender:
        """A producer of ready-made entries for one topic or partition. ``options``: those of :class:`EntrySender`."""
        sender = EntrySender(self.session, TopicName.parse(topic), name, **options)
        await sender.open()
        return sender

    async def get_partitions_for_topic(
        self, topic: str, create: bool | None = None, *, fallback_on_old_broker: bool = False
    ) -> list[str]:
        """Complete names of all partitions, or of the topic itself (PIP-344).

        ``create=False`` never creates anything: it raises TopicNotFound for a topic that is not there, and NotSupported
        if the broker is too old to answer without creating; ``fallback_on_old_broker`` then asks all the same, and the
        topic may come into being. ``create=True`` lets a missing topic become what the broker's policy says. Calling
        without ``create`` is deprecated and means True.
        """
        name = topic_name(topic)
        asked = asked_to_create(create)
        count = await self.session.lookup.partitions(name, create=asked, fallback_on_old_broker=fallback_on_old_broker)
        return [str(partition) for partition in partition_names(name, count)]

    async def lookup_batch(self, topics: Iterable[str]) -> dict[str, BrokerAddress | PulsarError]:
        """The broker that serves each topic, or why there is none, by the names as they are given (PIP-35).

        One question for many topics where the broker offers that, else one for each. Nothing is created. What may pass
        is asked again until the lookup timeout.
        """
        listed = [topics] if isinstance(topics, str) else topics
        names = {topic: _name_or_failure(topic) for topic in listed}
        asked = [name for name in names.values() if isinstance(name, TopicName)]
        answers = await self.session.lookup.brokers(asked)
        return {topic: answers[name] if isinstance(name, TopicName) else name for topic, name in names.items()}

    async def get_topics_of_namespace(self, namespace: str, mode: TopicMode = "PERSISTENT") -> list[str]:
        """Complete names; partitioned topics appear as their partitions."""
        return (await self.session.lookup.topics_of_namespace(NamespaceName.parse(namespace), mode)).names

    async def get_schema(self, topic: str, version: bytes | None = None) -> VersionedSchema | None:
        """The latest schema of a topic, or a version of it; None if there is none."""
        return await self.session.lookup.schema(TopicName.parse(topic), version)

    async def register_schema(self, topic: str, schema: SchemaInfo) -> bytes:
        """The version of a schema, which the broker adds if its policies allow. Raises IncompatibleSchema."""
        name = TopicName.parse(topic)
        return await store_schema(await self.session.connect(name), name, schema)

    async def close(self) -> None:
        """Close everything this client made, then its connections. Raises the first failure of a producer."""
        if self._opened is None:
            return
        made, self._made = self._made, []
        failure: BaseException | None = None
        for resource in made:
            try:
                await resource.close()
            except Exception as error:  # noqa: BLE001  # the connections must be closed whatever happened before
                failure = failure or error
        await self._opened.close()
        if failure is not None:
            raise failure


def _name_or_failure(topic: str) -> TopicName | InvalidTopicName:
    try:
        return topic_name(topic)
    except InvalidTopicName as error:
        return error
