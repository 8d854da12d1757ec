"""Client that creates producers, consumers, readers and table views."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from interpulse.client.checks import check_type, topic_name, topic_names
from interpulse.client.closing import AsyncCloses
from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.consuming.consumer import Consumer
from interpulse.client.consuming.consumer_config import ConsumerConfig
from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.client.consuming.reader import Reader, ReaderConfig
from interpulse.client.consuming.table_view import TableView, TableViewConfig
from interpulse.client.consuming.topic_discovery import TopicsPattern
from interpulse.client.failover.auto import AutoFailover
from interpulse.client.failover.controlled import ControlledFailover
from interpulse.client.failover.sites import Site, SiteChange
from interpulse.client.failover.watch import first_site, watch_sites
from interpulse.client.lookup.lookup import TopicMode, VersionedSchema, store_schema
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


def asked_to_create(create: bool | None) -> bool:
    """Return True if ``get_partitions_for_topic`` may create the topic. None is deprecated and means True."""
    if create is None:
        warnings.warn(
            "get_partitions_for_topic(topic) may create the topic: pass create=False, or create=True to allow it",
            DeprecationWarning,
            stacklevel=3,
        )
    return create is not False


class Client(AsyncCloses):
    """Connection to one cluster, shared by its producers, consumers, readers and table views.

    ::

        async with Client("pulsar://127.0.0.1:6650") as client:
            async with await client.create_producer("flights") as producer:
                await producer.send(b"LH400", key="FRA")

    ``options`` are fields of :class:`ClientConfig`. The constructor opens no connection. Make all calls in one event
    loop; the client is not thread-safe. Failures are classes of ``interpulse.model.errors``. ``outages`` logs when the
    cluster stops answering and when it answers again. With ``failover`` the client changes to another cluster when its
    own is lost (:class:`AutoFailover`), or when a document says so (:class:`ControlledFailover`).
    """

    def __init__(
        self,
        service_url: str,
        *,
        outages: Outages | None = None,
        failover: AutoFailover | ControlledFailover | None = None,
        **options: Any,
    ) -> None:
        config = ClientConfig(service_url, **options)
        self._failover = failover
        self._site = None if failover is None else first_site(service_url, config, failover)
        self._config = config if self._site is None else self._site.applied_to(config)
        self._outages = outages
        self._opened: Session | None = None
        self._made: list[Producer | Consumer | Reader | TableView[Any]] = []

    @property
    def session(self) -> Session:
        """Connections and lookups of this client, for code that works on entries. Needs a running event loop."""
        if self._opened is None:
            self._opened = Session(self._config, self._outages, site=self._site)
            if self._failover is not None and self._site is not None:
                self._opened.spawn(watch_sites(self._opened, self._failover, self._site))
        return self._opened

    @property
    def config(self) -> ClientConfig:
        """Settings, with address and identity of the present site."""
        return self._config if self._opened is None else self._opened.config

    @property
    def site(self) -> Site | None:
        """Present site of a client with ``failover``; None without it."""
        return self._site if self._opened is None else self._opened.site

    def on_site_change(self, callback: Callable[[SiteChange], object]) -> Callable[[], None]:
        """Call ``callback`` in the event loop after every change to another site. Return the function that ends this.

        An error of the callback is logged. Without ``failover`` it is never called. Needs a running event loop.
        """
        return self.session.on_site_change(callback)

    async def create_producer(self, topic: str, **options: Any) -> Producer:
        """Return a producer, registered with the broker of every partition.

        ``options`` are fields of :class:`ProducerConfig`.
        """
        producer = Producer(self.session, topic_name(topic), ProducerConfig(**options))
        await producer.open()
        self._keep(producer)
        return producer

    async def subscribe(
        self, topics: str | Sequence[str] | re.Pattern[str], subscription: str, **options: Any
    ) -> Consumer:
        """Return a consumer of one or several topics, or of all topics that match a pattern.

        A pattern is a compiled expression for topics of one namespace, such as
        ``re.compile("public/default/flights-.*")``. Topics that are created later are added. ``options`` are fields of
        :class:`ConsumerConfig`.
        """
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
        """Return a reader of one or several topics, starting at ``start`` (EARLIEST, LATEST or a message).

        ``options`` are fields of :class:`ReaderConfig`.
        """
        names = topic_names(topics)
        if not names:
            raise InvalidRequest("a reader needs at least one topic")
        reader = Reader(self.session, names, ReaderConfig(start=start, **options))
        await reader.open()
        self._keep(reader)
        return reader

    async def create_table_view(self, topic: str, **options: Any) -> TableView[Any]:
        """Return a table view: the latest value of every key of a topic, kept up to date.

        ``options`` are fields of :class:`TableViewConfig`.
        """
        view = TableView[Any](self.session, topic_name(topic), TableViewConfig(**options))
        await view.open()
        self._keep(view)
        return view

    def _keep(self, made: Producer | Consumer | Reader | TableView[Any]) -> None:
        """Register an object that must be closed with the client. Drop those that are closed already."""
        self._made = [*(other for other in self._made if not other.is_closed), made]

    async def create_entry_reader(
        self, topic: str, *, after: Position, upto: Position | None = None, **options: Any
    ) -> EntryReader:
        """Return a reader of the entries of one topic or partition.

        ``options`` are parameters of :class:`EntryReader`.
        """
        reader = EntryReader(self.session, TopicName.parse(topic), after=after, upto=upto, **options)
        await reader.open()
        return reader

    async def create_entry_sender(self, topic: str, name: str, **options: Any) -> EntrySender:
        """Return a producer of prebuilt entries for one topic or partition.

        ``options`` are parameters of :class:`EntrySender`.
        """
        sender = EntrySender(self.session, TopicName.parse(topic), name, **options)
        await sender.open()
        return sender

    async def get_partitions_for_topic(
        self, topic: str, create: bool | None = None, *, fallback_on_old_broker: bool = False
    ) -> list[str]:
        """Return the full names of all partitions, or of the topic itself if it is not partitioned (PIP-344).

        With ``create=False`` nothing is ever created: raise TopicNotFound if the topic does not exist, and NotSupported
        if the broker is too old to answer without creating it. ``fallback_on_old_broker`` then asks anyway, which may
        create the topic. With ``create=True`` a missing topic is created if the broker's policy allows it. Omitting
        ``create`` is deprecated and means True.
        """
        name = topic_name(topic)
        asked = asked_to_create(create)
        count = await self.session.lookup.partitions(name, create=asked, fallback_on_old_broker=fallback_on_old_broker)
        return [str(partition) for partition in partition_names(name, count)]

    async def lookup_batch(self, topics: Iterable[str]) -> dict[str, BrokerAddress | PulsarError]:
        """Return the broker that serves each topic, or the failure of its lookup, by the names as given (PIP-35).

        Uses one request for many topics if the broker supports it, otherwise one per topic. No topic is created.
        Temporary failures are retried until the lookup timeout.
        """
        listed = [topics] if isinstance(topics, str) else topics
        names = {topic: _name_or_failure(topic) for topic in listed}
        asked = [name for name in names.values() if isinstance(name, TopicName)]
        answers = await self.session.lookup.brokers(asked)
        return {topic: answers[name] if isinstance(name, TopicName) else name for topic, name in names.items()}

    async def get_topics_of_namespace(self, namespace: str, mode: TopicMode = "PERSISTENT") -> list[str]:
        """Return the full names of the topics of a namespace. Partitioned topics appear as their partitions."""
        return (await self.session.lookup.topics_of_namespace(NamespaceName.parse(namespace), mode)).names

    async def get_schema(self, topic: str, version: bytes | None = None) -> VersionedSchema | None:
        """Return the latest schema of a topic, or one version of it; None if there is none."""
        return await self.session.lookup.schema(TopicName.parse(topic), version)

    async def register_schema(self, topic: str, schema: SchemaInfo) -> bytes:
        """Register a schema and return its version. Raise IncompatibleSchema.

        The broker adds a new schema only if its policies allow it.
        """
        name = TopicName.parse(topic)
        return await store_schema(await self.session.connect(name), name, schema)

    async def close(self) -> None:
        """Close all producers, consumers, readers and table views, then the connections.

        Raise the first failure of a producer.
        """
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
