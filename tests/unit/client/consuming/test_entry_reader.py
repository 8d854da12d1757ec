"""Reading and sending entry by entry."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from interpulse.client.config import ClientConfig
from interpulse.client.consuming.entry_reader import EntryReader, entries_of
from interpulse.client.producing.entry_sender import EntrySender
from interpulse.client.session import Session
from interpulse.client.transport.backoff import Backoff, retry
from interpulse.model.errors import (
    ChecksumError,
    DataLoss,
    InvalidRequest,
    OperationTimeout,
    PersistenceError,
    TopicNotFound,
)
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.replication.copy import EntryMarker
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry
from interpulse.wire.frames import Frame
from tests.support import commands
from tests.support.scripted_broker import Peer, ScriptedBroker

TOPIC = TopicName.parse("t")


def entry_of(number: int, size: int = 10) -> bytes:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=number, publish_time=1)
    return build_entry(metadata.SerializeToString(), bytes(size))


class LogBroker(ScriptedBroker):
    """Serves a log of entries to subscribers, as far as permits go."""

    def __init__(self, log: dict[Position, bytes]) -> None:
        super().__init__()
        self.log = log
        self.last = max(log, default=EARLIEST)
        self.sent_max = 10**9
        self._cursors: dict[int, Position] = {}
        self.scripts[pb.BaseCommand.SUBSCRIBE] = self._on_subscribe
        self.scripts[pb.BaseCommand.FLOW] = self._on_flow

    def _on_subscribe(self, peer: Peer, frame: Frame) -> None:
        subscribe = frame.command.subscribe
        start = subscribe.start_message_id
        ledger, entry = (number - 2**64 if number >= 2**63 else number for number in (start.ledgerId, start.entryId))
        self._cursors[subscribe.consumer_id] = Position(ledger, entry)
        peer.answer(frame)

    def _on_flow(self, peer: Peer, frame: Frame) -> None:
        flow = frame.command.flow
        cursor = self._cursors[flow.consumer_id]
        ahead = [position for position in sorted(self.log) if position >= cursor][: flow.messagePermits]
        for position in ahead:
            if self.sent_max <= 0:
                peer.drop()
                return
            self.sent_max -= 1
            peer.say(commands.message(flow.consumer_id, position, self.log[position]))
            self._cursors[flow.consumer_id] = Position(position.ledger, position.entry + 1)


def log_of(count: int, ledger: int = 1, size: int = 10) -> dict[Position, bytes]:
    return {Position(ledger, number): entry_of(number, size) for number in range(count)}


@pytest.fixture
async def sessions() -> AsyncIterator[list[Session]]:
    opened: list[Session] = []
    yield opened
    for session in opened:
        await session.close()


def session_for(broker: ScriptedBroker, sessions: list[Session]) -> Session:
    session = Session(ClientConfig(broker.url, backoff_initial_ms=1, backoff_max_ms=10, operation_timeout_ms=60_000))
    sessions.append(session)
    return session


async def rest_of(reader: EntryReader) -> list[Position]:
    async with asyncio.timeout(60):
        return [entry.position async for entry in reader]


async def read_all(reader: EntryReader) -> list[Position]:
    await reader.open()
    positions = await rest_of(reader)
    await reader.close()
    return positions


async def test_range_when_read_then_has_exactly_its_entries(sessions: list[Session]) -> None:
    async with LogBroker(log_of(10) | log_of(10, ledger=3)) as broker:
        reader = EntryReader(session_for(broker, sessions), TOPIC, after=Position(1, 6), upto=Position(3, 1))
        expected = [Position(1, 7), Position(1, 8), Position(1, 9), Position(3, 0), Position(3, 1)]
        assert await read_all(reader) == expected
        (subscribe,) = broker.all_of(pb.BaseCommand.SUBSCRIBE)
        assert not subscribe.subscribe.durable
        assert not subscribe.subscribe.force_topic_creation
        assert broker.count(pb.BaseCommand.CLOSE_CONSUMER) == 1


async def test_entry_when_read_then_has_its_bytes_and_its_parts(sessions: list[Session]) -> None:
    async with LogBroker(log_of(1)) as broker:
        reader = EntryReader(session_for(broker, sessions), TOPIC, after=EARLIEST, upto=Position(1, 0))
        await reader.open()
        (entry,) = await reader.read_batch()
        assert entry.raw == entry_of(0)
        assert (entry.parsed.metadata.sequence_id, bytes(entry.parsed.payload)) == (0, bytes(10))
        assert await reader.read_batch() == []
        await reader.close()


def served(broker: LogBroker) -> None:
    """All entries that a FLOW lets pass leave in one piece."""

    def on_flow(peer: Peer, frame: Frame) -> None:
        pieces: list[bytes] = []
        say, peer.say = peer.say, pieces.append  # type: ignore[method-assign, assignment]
        broker._on_flow(peer, frame)
        peer.say = say  # type: ignore[method-assign]
        peer.say(b"".join(pieces))

    broker.scripts[pb.BaseCommand.FLOW] = on_flow


@pytest.mark.parametrize(
    ("after", "upto", "expected"),
    [
        (EARLIEST, Position(1, 9), range(10)),
        (Position(1, 3), Position(1, 6), range(4, 7)),
        (Position(1, 3), Position(1, 3), range(0)),
        (Position(1, 5), Position(2, 0), range(6, 10)),
    ],
    ids=["all", "ends-inside", "empty", "ends-behind"],
)
async def test_range_when_its_entries_come_in_one_piece_then_they_are_runs(
    sessions: list[Session], after: Position, upto: Position, expected: range
) -> None:
    async with LogBroker(log_of(10) | log_of(1, ledger=3)) as broker:
        served(broker)
        async with EntryReader(session_for(broker, sessions), TOPIC, after=after, upto=upto) as reader:
            await reader.open()
            arrived = []
            while batch := await reader.read_runs():
                arrived += batch
            assert [each.position for each in entries_of(arrived)] == [Position(1, number) for number in expected]
            assert [each.raw for each in entries_of(arrived)] == [entry_of(number) for number in expected]
            assert len(arrived) == min(len(expected), 1)
            assert reader.reached == (Position(1, expected[-1]) if expected else after)


async def test_entry_when_it_spans_reads_then_its_run_can_be_stamped(sessions: list[Session]) -> None:
    large = entry_of(0, size=1_000_000)
    async with LogBroker({Position(1, 0): large}) as broker:
        async with EntryReader(session_for(broker, sessions), TOPIC, after=EARLIEST, upto=Position(1, 0)) as reader:
            await reader.open()
            (run,) = await reader.read_runs()
        assert (run.positions, run.raws) == ([Position(1, 0)], [large])
        copies, counts = EntryMarker("lane", "east").copies(run.raws, run.positions, [7], 0, [])
        assert (len(copies), counts) == (1, [1])


async def test_range_when_empty_then_ends_without_asking_a_broker(sessions: list[Session]) -> None:
    async with LogBroker({}) as broker:
        reader = EntryReader(session_for(broker, sessions), TOPIC, after=Position(1, 5), upto=Position(1, 5))
        assert await read_all(reader) == []
        assert broker.peers == []


async def test_range_when_the_last_position_has_no_entry_then_ends_at_the_next_one(sessions: list[Session]) -> None:
    async with LogBroker(log_of(3) | log_of(3, ledger=7)) as broker:
        reader = EntryReader(session_for(broker, sessions), TOPIC, after=EARLIEST, upto=Position(1, 9))
        assert await read_all(reader) == [Position(1, 0), Position(1, 1), Position(1, 2)]


async def test_connection_when_lost_in_a_range_then_nothing_is_missing_and_nothing_twice(
    sessions: list[Session],
) -> None:
    async with LogBroker(log_of(300)) as broker:
        broker.sent_max = 100

        def refill(peer: Peer, frame: Frame) -> None:
            broker.sent_max = max(broker.sent_max, 100)
            broker._on_subscribe(peer, frame)

        broker.scripts[pb.BaseCommand.SUBSCRIBE] = refill
        reader = EntryReader(session_for(broker, sessions), TOPIC, after=EARLIEST, upto=Position(1, 299))
        assert await read_all(reader) == list(log_of(300))
        assert reader.resubscribed_count >= 2
        names = [command.subscribe.subscription for command in broker.all_of(pb.BaseCommand.SUBSCRIBE)]
        assert len(set(names)) == len(names)


async def test_range_when_entries_at_its_end_are_not_given_out_then_ends_after_making_sure(
    sessions: list[Session],
) -> None:
    async with LogBroker(log_of(3)) as broker:
        broker.last = (1, 5)
        reader = EntryReader(session_for(broker, sessions), TOPIC, after=EARLIEST, upto=Position(1, 4), silence_ms=30)
        assert await read_all(reader) == [Position(1, 0), Position(1, 1), Position(1, 2)]
        assert broker.count(pb.BaseCommand.SUBSCRIBE) == 2


async def test_range_when_it_gives_out_nothing_at_all_then_ends_after_two_more_subscriptions(
    sessions: list[Session],
) -> None:
    async with LogBroker({}) as broker:
        broker.last = (1, 5)
        reader = EntryReader(session_for(broker, sessions), TOPIC, after=EARLIEST, upto=Position(1, 4), silence_ms=30)
        assert await read_all(reader) == []
        assert broker.count(pb.BaseCommand.SUBSCRIBE) == 3


async def test_range_when_the_broker_does_not_even_repeat_the_last_entry_then_it_is_not_taken_for_the_end(
    sessions: list[Session],
) -> None:
    async with LogBroker(log_of(3)) as broker:
        broker.last = (1, 5)
        reader = EntryReader(
            session_for(broker, sessions),
            TOPIC,
            after=EARLIEST,
            upto=Position(1, 4),
            silence_ms=20,
            poll_timeout_ms=1500,
        )
        await reader.open()
        assert len(await reader.read_batch()) == 3
        broker.log = {}
        with pytest.raises(OperationTimeout):
            await reader.read_batch()
        assert broker.count(pb.BaseCommand.SUBSCRIBE) > 2
        await reader.close()


@pytest.mark.parametrize("new_log", [{}, log_of(3, ledger=2)], ids=["nothing-left", "later-entries-left"])
async def test_topic_when_trimmed_behind_an_entry_that_arrived_then_data_loss(
    sessions: list[Session], new_log: dict[Position, bytes]
) -> None:
    async with LogBroker(log_of(3)) as broker:
        reader = EntryReader(session_for(broker, sessions), TOPIC, after=EARLIEST, upto=Position(1, 9), silence_ms=20)
        await reader.open()
        assert len(await reader.read_batch()) == 3
        broker.log = new_log
        broker.last = max(new_log, default=EARLIEST)
        for peer in broker.peers:
            peer.drop()
        with pytest.raises(DataLoss, match="1:2"):
            await reader.read_batch()
        await reader.close()


@pytest.mark.parametrize("left", [0, 1, 3])
async def test_compacted_range_whose_end_was_compacted_away_ends_with_what_is_left(
    sessions: list[Session], left: int
) -> None:
    """It was planned before."""
    async with LogBroker(log_of(left)) as broker:
        reader = EntryReader(
            session_for(broker, sessions),
            TOPIC,
            after=EARLIEST,
            upto=Position(1, 4),
            silence_ms=30,
            poll_timeout_ms=20_000,
            read_compacted=True,
        )
        assert await read_all(reader) == [Position(1, number) for number in range(left)]
        assert broker.count(pb.BaseCommand.SUBSCRIBE) == 2, "an end is believed after a second look"


async def test_compacted_range_of_which_nothing_is_left_behind_its_start_ends(sessions: list[Session]) -> None:
    async with LogBroker(log_of(2)) as broker:
        reader = EntryReader(
            session_for(broker, sessions),
            TOPIC,
            after=Position(1, 2),
            upto=Position(1, 4),
            silence_ms=30,
            poll_timeout_ms=20_000,
            read_compacted=True,
        )
        assert await read_all(reader) == []


async def test_range_when_all_of_it_is_gone_before_any_arrived_then_data_loss(sessions: list[Session]) -> None:
    async with LogBroker({}) as broker:
        reader = EntryReader(
            session_for(broker, sessions), TOPIC, after=Position(1, 2), upto=Position(1, 4), silence_ms=10
        )
        with pytest.raises(DataLoss, match="entries after 1:2 are missing"):
            await read_all(reader)


@pytest.mark.parametrize(("after", "is_there"), [(Position(1, 1), True), (Position(1, -1), False), (EARLIEST, False)])
async def test_start_is_there_when_the_broker_shows_its_entry(
    sessions: list[Session], after: Position, is_there: bool
) -> None:
    async with LogBroker(log_of(3)) as broker:
        reader = EntryReader(session_for(broker, sessions), TOPIC, after=after, upto=Position(1, 2))
        await read_all(reader)
        assert reader.start_is_there == is_there


async def test_range_when_the_topic_never_reaches_its_end_then_operation_timeout(sessions: list[Session]) -> None:
    async with LogBroker(log_of(3)) as broker:
        reader = EntryReader(
            session_for(broker, sessions),
            TOPIC,
            after=Position(1, 2),
            upto=Position(1, 4),
            silence_ms=10,
            poll_timeout_ms=50,
        )
        with pytest.raises(OperationTimeout):
            await read_all(reader)
        await reader.close()


async def test_entry_when_damaged_then_checksum_error_names_it(sessions: list[Session]) -> None:
    log = log_of(3)
    log[Position(1, 1)] = log[Position(1, 1)][:-1] + b"x"
    async with LogBroker(log) as broker:
        reader = EntryReader(session_for(broker, sessions), TOPIC, after=EARLIEST, upto=Position(1, 2))
        await reader.open()
        assert [entry.position for entry in await reader.read_batch()] == [Position(1, 0)]
        with pytest.raises(ChecksumError, match="1:1"):
            await reader.read_batch()
        await reader.close()


async def test_buffer_when_not_read_then_stays_within_its_bound(sessions: list[Session]) -> None:
    async with LogBroker(log_of(200, size=10_000)) as broker:
        reader = EntryReader(
            session_for(broker, sessions), TOPIC, after=EARLIEST, upto=Position(1, 199), buffer_bytes=100_000
        )
        await reader.open()
        await broker.heard(pb.BaseCommand.FLOW)
        await reader.last_message_id()
        assert sum(command.flow.messagePermits for command in broker.all_of(pb.BaseCommand.FLOW)) <= 50
        assert len(await rest_of(reader)) == 200
        await reader.close()


async def test_topic_when_deleted_while_reading_then_topic_not_found(sessions: list[Session]) -> None:
    async with LogBroker(log_of(3)) as broker:
        reader = EntryReader(session_for(broker, sessions), TOPIC, after=EARLIEST, upto=Position(1, 9))
        await reader.open()
        await reader.read_batch()
        broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: peer.say(
            commands.error(frame.command.subscribe.request_id, 11, "deleted")
        )
        consumer_id = broker.all_of(pb.BaseCommand.SUBSCRIBE)[-1].subscribe.consumer_id
        broker.peers[-1].say(commands.close_consumer(consumer_id))
        with pytest.raises(TopicNotFound):
            await rest_of(reader)
        await reader.close()


def metadata_of(sequence_id: int) -> bytes:
    return pb.MessageMetadata(producer_name="sender", sequence_id=sequence_id, publish_time=1).SerializeToString()


async def test_sender_when_it_sends_then_the_numbers_are_those_of_the_caller(sessions: list[Session]) -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.PRODUCER] = lambda peer, frame: peer.say(
            commands.producer_success(frame.command.producer.request_id, name="sender", last_sequence_id=41)
        )
        async with EntrySender(session_for(broker, sessions), TOPIC, "sender") as sender:
            await sender.open()
            assert sender.last_sequence_id == 41
            futures = [
                await sender.send(metadata_of(number), b"x", sequence_id=number, highest_sequence_id=number)
                for number in (100, 2**40, 2**62)
            ]
            await sender.drain()
        assert [future.result().position.entry for future in futures] == [0, 1, 2]
        sends = [command.send for command in broker.all_of(pb.BaseCommand.SEND)]
        assert [send.sequence_id for send in sends] == [send.highest_sequence_id for send in sends]
        assert broker.stored == [100, 2**40, 2**62]


async def test_complete_reader_when_its_connection_is_lost_then_can_be_asked_again(sessions: list[Session]) -> None:
    async with LogBroker(log_of(2)) as broker:
        reader = EntryReader(session_for(broker, sessions), TOPIC, after=EARLIEST, upto=Position(1, 1))
        await reader.open()
        await reader.last_message_id()  # the entries are there, and nothing is read yet
        for peer in broker.peers:
            peer.drop()
        backoff = Backoff(1, 10)
        await retry(reader.last_message_id, timeout_ms=60_000, backoff=backoff, retriable=lambda error: error.retriable)
        assert await rest_of(reader) == [Position(1, 0), Position(1, 1)]
        await reader.close()


async def test_reader_when_it_cannot_reconnect_then_says_why_if_it_is_asked(sessions: list[Session]) -> None:
    async with LogBroker(log_of(2)) as broker:
        reader = EntryReader(session_for(broker, sessions), TOPIC, after=EARLIEST, upto=Position(1, 9))
        await reader.open()
        reader.on_disconnected(None)
        reader.on_failed(TopicNotFound("deleted"))
        with pytest.raises(TopicNotFound):
            await reader.last_message_id()
        await reader.close()


async def test_sender_when_it_sends_a_run_then_in_groups_that_fit_the_window(sessions: list[Session]) -> None:
    async with ScriptedBroker() as broker:
        session = session_for(broker, sessions)
        async with EntrySender(session, TOPIC, "lane", window_entries=10, window_bytes=400) as sender:
            await sender.open()
            numbers = list(range(23))
            futures = await sender.send_run(numbers, [1] * 23, [entry_of(number) for number in numbers])
            receipts = [await future for future in futures]
            assert [len(receipt.positions) for receipt in receipts] == [5, 5, 5, 5, 3]
            futures = await sender.send_run([23, 24], [1, 2], [bytes(300)] * 2)
            await sender.drain()
            assert [len((await future).positions) for future in futures] == [1, 1], "more bytes than fit"
            assert broker.stored == [*numbers, 23, 24]
            sends = [command.send for command in broker.all_of(pb.BaseCommand.SEND)]
            assert [(each.num_messages, each.highest_sequence_id) for each in sends[-2:]] == [(1, 0), (2, 24)]
            with pytest.raises(InvalidRequest, match="an entry of 6000000 bytes is above the limit"):
                await sender.send_run([25, 26], [1, 1], [bytes(10), bytes(6_000_000)])


async def test_sender_when_an_entry_is_not_stored_then_ends_with_the_reason(sessions: list[Session]) -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.SEND] = lambda peer, frame: peer.say(
            commands.send_error(frame.command.send.producer_id, frame.command.send.sequence_id, 2, "disk full")
        )
        async with EntrySender(session_for(broker, sessions), TOPIC, "sender") as sender:
            await sender.open()
            await sender.send(metadata_of(1), b"x", sequence_id=1)
            with pytest.raises(PersistenceError, match="disk full"):
                await sender.drain()
            with pytest.raises(PersistenceError):
                await sender.send(metadata_of(2), b"x", sequence_id=2)


@pytest.mark.parametrize("bound", [{"window_entries": 2}, {"window_bytes": 50}])
async def test_window_when_full_then_sending_waits(sessions: list[Session], bound: dict[str, int]) -> None:
    async with ScriptedBroker() as broker:
        held: list[tuple[Peer, Frame]] = []
        broker.scripts[pb.BaseCommand.SEND] = lambda peer, frame: held.append((peer, frame))
        async with EntrySender(session_for(broker, sessions), TOPIC, "sender", **bound) as sender:  # type: ignore[arg-type]
            await sender.open()
            for number in range(2):
                await sender.send(metadata_of(number), b"x" * 20, sequence_id=number)
            third = asyncio.create_task(sender.send(metadata_of(2), b"x", sequence_id=2))
            await broker.heard(pb.BaseCommand.SEND, 2)
            assert not third.done()
            for peer, frame in held:
                peer.answer(frame)
            await asyncio.wait_for(third, 5)


DELETED, TEXT = SchemaInfo(SchemaType.NONE), SchemaInfo(SchemaType.STRING)


@pytest.mark.parametrize(
    ("on_opening", "on_return", "brought"),
    [
        pytest.param(TEXT, TEXT, [pb.Schema.String, pb.Schema.String], id="typed"),
        pytest.param(None, TEXT, [None, pb.Schema.String], id="typed-since"),
        pytest.param(TEXT, DELETED, [pb.Schema.String, None], id="deleted"),
    ],
)
async def test_sender_when_it_takes_the_schema_of_the_topic_then_the_one_of_the_moment(
    sessions: list[Session], on_opening: SchemaInfo | None, on_return: SchemaInfo | None, brought: list[int | None]
) -> None:
    """Pulsar answers a deleted schema with type None, and would store it if it came back."""
    async with ScriptedBroker() as broker:
        present = [on_opening, on_return]

        def answer(peer: Peer, frame: Frame) -> None:
            number, schema = frame.command.getSchema.request_id, present.pop(0)
            peer.say(
                commands.get_schema_error(number, 11, "no schema")
                if schema is None
                else commands.get_schema_response(number, schema, bytes(8))
            )

        broker.scripts[pb.BaseCommand.GET_SCHEMA] = answer
        async with EntrySender(session_for(broker, sessions), TOPIC, "sender", schema_of_topic=True) as sender:
            await sender.open()
            broker.peers[-1].drop()
            await broker.heard(pb.BaseCommand.PRODUCER, 2)
        opened = [command.producer for command in broker.all_of(pb.BaseCommand.PRODUCER)]
        assert [each.schema.type if each.HasField("schema") else None for each in opened] == brought
