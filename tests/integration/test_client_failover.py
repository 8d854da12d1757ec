"""Our client while its cluster is lost and another one has copies of its messages."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from interpulse.client import Client, Consumer, Credentials, Reader
from interpulse.client.failover.auto import AutoFailover
from interpulse.client.failover.controlled import ControlledFailover
from interpulse.client.failover.sites import Site, SiteChange
from interpulse.client.messages import Message
from interpulse.model.errors import MessageOfAnotherCluster, OperationTimeout
from interpulse.model.ids import EARLIEST, MessageId
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.sync import Client as SyncClient
from tests.support.site_pair import TOPIC, SitePair, site_pair
from tests.support.tcp_relay import TcpRelay
from tests.support.waiting import until

LONG_MS = 60_000
TEXT = SchemaInfo(SchemaType.STRING, b"", {}, "text")


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[SitePair]:
    with site_pair(tmp_path) as started:
        await started.raise_ledgers()
        yield started


def failover(pair: SitePair, **options: object) -> AutoFailover:
    sites = [Site(pair.east.service_url), Site(pair.west.service_url)]
    settings = {"fail_after": 3, "interval_s": 0.05, "timeout_s": 2, **options}
    return AutoFailover(sites, **settings)  # type: ignore[arg-type]


def client_of(pair: SitePair, **options: object) -> Client:
    return Client(pair.east.service_url, failover=failover(pair, **options), backoff_max_ms=200)


async def taken(consumer: Consumer, count: int) -> list[Message]:
    return [await consumer.receive(LONG_MS) for _ in range(count)]


async def read(reader: Reader, count: int) -> list[bytes | None]:
    return [(await reader.read_next(LONG_MS)).content for _ in range(count)]


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


async def nothing_more(consumer: Consumer, reader: Reader) -> bool:
    for receive in (consumer.receive, reader.read_next):
        with pytest.raises(OperationTimeout):
            await receive(200)
    return True


async def test_client_when_its_site_is_killed_then_all_go_on_at_the_other_one(
    pair: SitePair, caplog: pytest.LogCaptureFixture
) -> None:
    """F17."""
    changes: list[SiteChange] = []
    async with client_of(pair) as client:
        client.on_site_change(changes.append)
        producer = await client.create_producer(TOPIC, name="p", batch_messages_max=3, schema=TEXT)
        consumer = await client.subscribe(TOPIC, "s", initial_position="earliest")
        reader = await client.create_reader(TOPIC)
        view = await client.create_table_view(TOPIC)
        ids = [await future for future in [await producer.enqueue(content) for content in numbers(0, 10)]]
        await producer.send(b"10", key="k")
        received = await taken(consumer, 11)
        consumer.acknowledge_cumulative(received[3])
        assert await read(reader, 5) == numbers(0, 5)
        assert {message.id.cluster for message in received} == {pair.east.service_url} == {ids[0].cluster}
        await pair.copy((await producer.send(b"11")).position)
        async with Client(pair.west.service_url) as west:
            await west.subscribe(TOPIC, "s", initial_position="earliest")

        await asyncio.to_thread(pair.east.stop)
        async with asyncio.timeout(10):
            message_id = await producer.send(b"12", key="k")

        assert (message_id.cluster, client.site) == (pair.west.service_url, Site(pair.west.service_url))
        assert message_id.ledger < received[0].id.ledger
        again = await taken(consumer, 13)
        assert [message.content for message in again] == numbers(0, 13)
        assert await read(reader, 8) == numbers(5, 13)
        await view.refresh()
        assert view.get("k") == b"12"
        assert (producer.name, again[-1].producer_name, again[-1].sequence_id) == ("p", "p", 12)
        consumer.acknowledge_cumulative(received[10])
        consumer.acknowledge(received[10])
        with pytest.raises(MessageOfAnotherCluster, match=pair.east.service_url):
            await consumer.seek(received[5].id)
        with pytest.raises(MessageOfAnotherCluster):
            await client.create_reader(TOPIC, start=ids[2])
        consumer.acknowledge_cumulative(again[10])
        assert await nothing_more(consumer, reader)
        stats = pair.west.admin.topics.stats(TOPIC)["subscriptions"]["s"]
        until(lambda: pair.west.admin.topics.stats(TOPIC)["subscriptions"]["s"]["msgBacklog"] == 2)
        assert stats["consumers"]
        assert client.session.late_acknowledgements == 2
    assert [(change.generation, change.after.service_url) for change in changes] == [(1, pair.west.service_url)]
    assert changes[0].silent_s > 0
    assert caplog.text.count("acknowledgements of messages of an earlier site are not sent") == 1


async def test_client_when_its_site_is_suspended_then_changes_and_stays(tmp_path: Path) -> None:
    """F18."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    relay = TcpRelay(f"127.0.0.1:{port}")
    await relay.listen()
    settings = {"brokerServicePort": port, "advertisedListeners": f"internal:pulsar://{relay.address}"}
    with site_pair(tmp_path, settings) as pair:
        await pair.raise_ledgers()
        sites = [Site(f"pulsar://{relay.address}"), Site(pair.west.service_url)]
        rules = AutoFailover(sites, fail_after=3, interval_s=0.1, timeout_s=0.5)
        async with Client(sites[0].service_url, failover=rules, backoff_max_ms=200) as client:
            producer = await client.create_producer(TOPIC)
            reader = await client.create_reader(TOPIC)
            await pair.copy((await producer.send(b"0")).position)
            assert await read(reader, 1) == [b"0"]
            changed = asyncio.Event()
            client.on_site_change(lambda _: changed.set())
            relay.hold()
            pending = await producer.enqueue(b"1")
            async with asyncio.timeout(3 * (0.1 + 0.5) + 2):
                await changed.wait()
            assert (await pending).cluster == pair.west.service_url
            assert await read(reader, 1) == [b"1"]
            relay.let_go()
            for number in numbers(2, 6):
                assert (await producer.send(number)).cluster == pair.west.service_url
            assert await read(reader, 4) == numbers(2, 6)
            assert client.session.generation == 1
    await relay.close()


async def test_readers_when_copies_name_no_source_then_go_on_by_publish_time(
    pair: SitePair, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(pair.east.service_url, failover=failover(pair), reader_overlap_s=0, backoff_max_ms=200) as client:
        producer = await client.create_producer(TOPIC)
        reader = await client.create_reader(TOPIC)
        for content in numbers(0, 4):
            last = await producer.send(content)
            await asyncio.sleep(0.002)  # another millisecond for each
        await pair.copy(last.position, marked=False)
        assert await read(reader, 2) == numbers(0, 2)
        await asyncio.to_thread(pair.east.stop)
        assert await read(reader, 3) == numbers(1, 4)
    assert "reader goes on by publish time" in caplog.text


async def test_non_durable_consumer_when_the_end_is_not_copied_then_what_arrives_later_is_not_repeated(
    pair: SitePair,
) -> None:
    async with client_of(pair) as client:
        producer = await client.create_producer(TOPIC, batching_enabled=False)
        consumer = await client.subscribe(TOPIC, "s", durable=False)
        ids = [await producer.send(content) for content in numbers(0, 6)]
        await pair.copy(ids[2].position)
        assert [message.content for message in await taken(consumer, 5)] == numbers(0, 5)
        changed = asyncio.Event()
        client.on_site_change(lambda _: changed.set())
        client.session.change_site(Site(pair.west.service_url), "asked for", silent_s=0)
        assert changed.is_set()
        await producer.send(b"west")
        assert (await consumer.receive(LONG_MS)).content == b"west"
        await pair.copy(ids[5].position)
        assert (await consumer.receive(LONG_MS)).content == b"5"


async def test_producer_when_its_schema_has_another_version_on_the_other_site_then_pending_messages_get_it(
    pair: SitePair,
) -> None:
    pair.west.admin.namespaces.set_schema_compatibility_strategy("public/default", "ALWAYS_COMPATIBLE")
    async with Client(pair.west.service_url) as west:
        await west.register_schema(TOPIC, SchemaInfo(SchemaType.INT32, b"", {}, "int"))
        version = await west.register_schema(TOPIC, TEXT)
    async with client_of(pair) as client:
        exclusive = {"access_mode": "exclusive", "name": "p", "schema": TEXT}
        producer = await client.create_producer(TOPIC, **exclusive)
        await producer.send(b"0")
        await asyncio.to_thread(pair.east.stop)
        pending = [await producer.enqueue(content) for content in numbers(1, 50)]
        await asyncio.gather(*pending)
        reader = await client.create_reader(TOPIC)
        messages = [await reader.read_next(LONG_MS) for _ in pending]
        assert [message.content for message in messages] == numbers(1, 50)
        assert [message.sequence_id for message in messages] == list(range(1, 50))
        assert {message.schema_version for message in messages} == {version}


async def test_client_when_a_file_names_another_site_then_goes_there(pair: SitePair, tmp_path: Path) -> None:
    source = tmp_path / "service-url.json"
    source.write_text("{not json")
    rules = ControlledFailover(str(source), interval_s=0.05)
    async with Client(pair.east.service_url, failover=rules, backoff_max_ms=200) as client:
        changed: asyncio.Future[SiteChange] = asyncio.get_running_loop().create_future()
        client.on_site_change(changed.set_result)
        producer = await client.create_producer(TOPIC)
        assert (await producer.send(b"0")).cluster == pair.east.service_url
        source.write_text(json.dumps({"serviceUrl": pair.west.service_url, "authPluginClassName": ""}))
        assert (await changed).after == Site(pair.west.service_url)
        assert (await producer.send(b"1")).cluster == pair.west.service_url


def test_blocking_client_when_its_site_is_killed_then_goes_on_at_the_other_one(tmp_path: Path) -> None:
    with site_pair(tmp_path) as pair:
        pair.west.admin.topics.create(TOPIC)
        changes: list[SiteChange] = []
        with SyncClient(pair.east.service_url, failover=failover(pair)) as client:
            client.on_site_change(changes.append)
            with client.create_producer(TOPIC) as producer, client.subscribe(TOPIC, "s") as consumer:
                producer.send("0")
                first = consumer.receive(LONG_MS)
                pair.east.stop()
                assert producer.send("1").cluster == pair.west.service_url
                consumer.acknowledge(first)
                assert isinstance(first.id, MessageId)
                with pytest.raises(MessageOfAnotherCluster):
                    consumer.seek(first.id)
                assert client.site == changes[0].after == Site(pair.west.service_url)


async def test_client_when_its_first_site_is_down_at_the_start_then_opens_at_the_other_one(pair: SitePair) -> None:
    await asyncio.to_thread(pair.east.stop)
    async with client_of(pair) as client:
        producer = await client.create_producer(TOPIC)
        assert (await producer.send(b"0")).cluster == pair.west.service_url
        assert await client.get_partitions_for_topic(TOPIC, create=False) == [TOPIC]


async def test_consumer_and_reader_when_the_other_site_lacks_topic_and_subscription_then_pass_nothing_over(
    tmp_path: Path,
) -> None:
    with site_pair(tmp_path) as pair:
        async with client_of(pair) as client, Client(pair.west.service_url) as west:
            producer = await client.create_producer(TOPIC)
            consumer, reader = await client.subscribe(TOPIC, "s"), await client.create_reader(TOPIC)
            for content in numbers(0, 2):
                last = await producer.send(content)
            assert await read(reader, 2) == numbers(0, 2)
            consumer.acknowledge(await consumer.receive(LONG_MS))
            await producer.close()
            client.session.change_site(Site(pair.west.service_url), "asked for", silent_s=0)
            await pair.copy(last.position)
            async with await west.create_producer(TOPIC) as local:
                await local.send(b"west")
            assert await read(reader, 1) == [b"west"]
            assert [message.content for message in await taken(consumer, 3)] == [b"0", b"1", b"west"]


async def test_consumer_when_the_other_site_has_no_such_subscription_then_begins_with_the_oldest_message(
    pair: SitePair,
) -> None:
    async with client_of(pair) as client:
        producer, consumer = await client.create_producer(TOPIC), await client.subscribe(TOPIC, "s")
        await pair.copy((await producer.send(b"0")).position)
        assert (await consumer.receive(LONG_MS)).content == b"0"
        client.session.change_site(Site(pair.west.service_url), "asked for", silent_s=0)
        assert (await consumer.receive(LONG_MS)).content == b"0"


async def test_entry_reader_when_the_client_changes_then_ends(pair: SitePair) -> None:
    async with client_of(pair) as client:
        reader = await client.create_entry_reader(TOPIC, after=EARLIEST)
        client.session.change_site(Site(pair.west.service_url), "asked for", silent_s=0)
        with pytest.raises(MessageOfAnotherCluster):
            await reader.read_batch()
        await reader.close()


async def test_client_when_it_returns_then_acknowledgements_of_the_first_time_count_again(pair: SitePair) -> None:
    async with client_of(pair) as client:
        producer, consumer = await client.create_producer(TOPIC), await client.subscribe(TOPIC, "s")
        await producer.send(b"0")
        message = await consumer.receive(LONG_MS)
        for site in (pair.west, pair.east):
            client.session.change_site(Site(site.service_url), "asked for", silent_s=0)
            assert (await producer.send(b"x")).cluster == site.service_url
        consumer.acknowledge(message)
        assert client.session.late_acknowledgements == 0
        assert client.session.generation == 2


async def test_acknowledgements_when_the_client_leaves_a_site_that_works_then_reach_it(pair: SitePair) -> None:
    async with client_of(pair) as client:
        producer, consumer = await client.create_producer(TOPIC), await client.subscribe(TOPIC, "s")
        await producer.send(b"0")
        consumer.acknowledge(await consumer.receive(LONG_MS))
        client.session.change_site(Site(pair.west.service_url), "asked for", silent_s=0)
        await producer.send(b"1")
    stats = pair.east.admin.topics.stats
    await asyncio.to_thread(until, lambda: stats(TOPIC)["subscriptions"]["s"]["msgBacklog"] == 0)


async def test_client_when_only_its_credentials_change_then_readers_and_consumers_go_on(pair: SitePair) -> None:
    async with client_of(pair) as client:
        producer, consumer = await client.create_producer(TOPIC), await client.subscribe(TOPIC, "s")
        reader = await client.create_reader(TOPIC)
        await producer.send(b"0")
        assert await read(reader, 1) == [b"0"]
        message = await consumer.receive(LONG_MS)
        site = Site(pair.east.service_url, credentials=Credentials.token("token:other"))
        client.session.change_site(site, "asked for", silent_s=0)
        consumer.acknowledge(message)
        await producer.send(b"1")
        assert await read(reader, 1) == [b"1"]
        assert (await consumer.receive(LONG_MS)).content in (b"0", b"1")
        assert client.session.late_acknowledgements == 0
