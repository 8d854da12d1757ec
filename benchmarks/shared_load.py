"""Consumers on plain sockets that share a subscription: they acknowledge what they get, or ask for it again."""

import time
from contextlib import ExitStack

from benchmarks.raw_frames import MESSAGE, encode, whole_frames
from benchmarks.raw_load import Permits, RawConnection, receive_until
from interpulse.wire import pulsar_api_pb2 as pb


def redeliver(service_url: str, topic: str, unacknowledged: int, repeats: int) -> float:
    """Holds messages unacknowledged and asks for all of them again; the seconds of all repeats."""
    command = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=1)
    again = encode(
        pb.BaseCommand(type=pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliverUnacknowledgedMessages=command)
    )
    with RawConnection(service_url) as connection:
        connection.subscribe(topic, "raw-redelivery", sub_type=pb.CommandSubscribe.Shared)
        _receive(connection, unacknowledged)
        started = time.perf_counter()
        for _ in range(repeats):
            connection.socket.sendall(again)
            _receive(connection, unacknowledged)
        return time.perf_counter() - started


def share(
    service_url: str,
    topic: str,
    subscription: str,
    sub_type: pb.CommandSubscribe.SubType.ValueType,
    *,
    consumers: int,
    count: int,
) -> float:
    """Drains a topic through so many consumers of one new subscription; the seconds until all was acknowledged.

    Acknowledgements go out together for all that one read brought, as the official clients group them.
    """
    with ExitStack() as stack:
        connections = [stack.enter_context(RawConnection(service_url)) for _ in range(consumers)]
        for connection in connections:
            connection.subscribe(topic, subscription, sub_type=sub_type)
        members = {connection: _Member(connection) for connection in connections}
        started = time.perf_counter()
        for member in members.values():
            member.start(count)
        receive_until(
            lambda: sum(member.received for member in members.values()) >= count,
            connections,
            lambda connection, received: members[connection].on_received(received),
        )
        for connection in connections:
            connection.look_up(topic)  # answered after the acknowledgements before it
        return time.perf_counter() - started


def read_ids(stream: bytes) -> tuple[list[pb.MessageIdData], bytes]:
    """The ids of all messages that are complete in a stream, and what is left of it."""
    ids = []
    frames, rest = whole_frames(stream)
    for frame in frames:
        if frame[9] == MESSAGE:
            command_end = 8 + int.from_bytes(frame[4:8])
            ids.append(pb.BaseCommand.FromString(frame[8:command_end]).message.message_id)
    return ids, rest


class _Member:
    """One consumer of the shared subscription."""

    def __init__(self, connection: RawConnection) -> None:
        self.received = 0
        self._connection = connection
        self._rest = b""

    def start(self, permits: int) -> None:
        self._permits = Permits(self._connection, permits)

    def on_received(self, received: bytes) -> None:
        ids, self._rest = read_ids(self._rest + received)
        if not ids:
            return
        self.received += len(ids)
        ack = pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Individual, message_id=ids)
        self._connection.socket.sendall(encode(pb.BaseCommand(type=pb.BaseCommand.ACK, ack=ack)))
        self._permits.on_messages(len(ids))


def _receive(connection: RawConnection, count: int) -> None:
    connection.count(MESSAGE, count, on_some=Permits(connection, count).on_messages)
