"""A broker whose every answer the test decides: the client's own doing, seen from the other side of the socket."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from interpulse.model.ids import MessageId, Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import Frame
from interpulse.wire.protocols import ServerProtocol
from tests.support import commands

Script = Callable[["Peer", Frame], None]


class Peer(asyncio.Protocol):
    """One client connection. ``seen`` holds every command in order."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self.broker = broker
        self.seen: list[pb.BaseCommand] = []
        self._protocol = ServerProtocol(server_version="Pulsar Server test", feature_flags=broker.flags, now=0.0)
        self._transport: asyncio.Transport | None = None
        self._dropped = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.broker.peers.append(self)

    def data_received(self, data: bytes) -> None:
        try:
            frames = self._protocol.receive_data(data)
        except RemoteProtocolError:
            self.drop()
            raise
        for frame in frames:
            if self._dropped:
                return
            assert isinstance(frame, Frame)
            self.seen.append(frame.command)
            script = self.broker.scripts.get(frame.command.type)
            if script is not None:
                script(self, frame)
            else:
                self.answer(frame)
        self.say(self._protocol.data_to_send())
        self.broker.news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    def say(self, data: bytes) -> None:
        if self._transport is not None and data:
            self._transport.write(data)

    def drop(self) -> None:
        """The network breaks."""
        self._dropped = True
        if self._transport is not None:
            self._transport.abort()

    def accept(self) -> None:
        self._protocol.accept()

    def refuse(self, code: int, message: str) -> None:
        self._protocol.refuse(code, message)

    @property
    def connect(self) -> pb.CommandConnect:
        return self._protocol.connect

    def answer(self, frame: Frame) -> None:
        """The friendliest possible answer."""
        command = frame.command
        kind = command.type
        if kind == pb.BaseCommand.CONNECT:
            self.accept()
        elif kind == pb.BaseCommand.PARTITIONED_METADATA:
            partitions = self.broker.partitions.get(command.partitionMetadata.topic, 0)
            self.say(commands.partitioned_metadata_response(command.partitionMetadata.request_id, partitions))
        elif kind == pb.BaseCommand.LOOKUP:
            self.say(commands.lookup_response(command.lookupTopic.request_id, broker_url=self.broker.url))
        elif kind == pb.BaseCommand.PRODUCER:
            name = command.producer.producer_name or "made-up"
            self.say(commands.producer_success(command.producer.request_id, name=name))
        elif kind == pb.BaseCommand.SEND:
            self.broker.store(self, command.send)
        elif kind == pb.BaseCommand.GET_LAST_MESSAGE_ID:
            self.broker.tell_last(self, command.getLastMessageId.request_id)
        else:
            field = _SUCCESS_FIELDS.get(kind)
            if field is not None:
                self.say(commands.success(getattr(command, field).request_id))


_SUCCESS_FIELDS: dict[int, str] = {
    pb.BaseCommand.SUBSCRIBE: "subscribe",
    pb.BaseCommand.CLOSE_PRODUCER: "close_producer",
    pb.BaseCommand.CLOSE_CONSUMER: "close_consumer",
    pb.BaseCommand.UNSUBSCRIBE: "unsubscribe",
    pb.BaseCommand.SEEK: "seek",
    pb.BaseCommand.WATCH_TOPIC_LIST_CLOSE: "watchTopicListClose",
}


class ScriptedBroker:
    """Answers everything kindly, except the command types in ``scripts``. An async context manager."""

    def __init__(self, flags: pb.FeatureFlags | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        pip_344 = pb.FeatureFlags(supports_get_partitioned_metadata_without_auto_creation=True)
        self.flags = flags or pip_344
        self.scripts: dict[int, Script] = {}
        self.partitions: dict[str, int] = {}
        self.peers: list[Peer] = []
        self.stored: list[int] = []
        """Sequence ids in the order of their SENDs that were confirmed."""

        self.news = asyncio.Event()
        self.last: tuple[int, int] = (-1, -1)
        self.url = ""
        self._tls = tls
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Peer(self), "127.0.0.1", 0, ssl=self._tls)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.url = f"{'pulsar+ssl' if self._tls else 'pulsar'}://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for peer in self.peers:
            peer.drop()
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await self._server.wait_closed()

    def store(self, peer: Peer, send: pb.CommandSend) -> None:
        """Confirm an entry at the next position."""
        self.stored.append(send.sequence_id)
        entry = len(self.stored) - 1
        peer.say(commands.send_receipt(send.producer_id, send.sequence_id, send.highest_sequence_id, 1, entry))

    def tell_last(self, peer: Peer, request_id: int) -> None:
        peer.say(commands.get_last_message_id_response(request_id, MessageId(*self.last), Position(-1, -1)))

    def count(self, kind: int) -> int:
        """How many commands of this type came, over all connections."""
        return sum(command.type == kind for peer in self.peers for command in peer.seen)

    async def heard(self, kind: int, count: int = 1) -> None:
        """Return when that many commands of this type have come."""
        async with asyncio.timeout(60):
            while self.count(kind) < count:
                self.news.clear()
                await self.news.wait()

    def all_of(self, kind: int) -> list[pb.BaseCommand]:
        return [command for peer in self.peers for command in peer.seen if command.type == kind]
