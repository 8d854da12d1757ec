"""TCP connection to a broker: requests and answers, and the producers and consumers registered on it.

Everything runs in the event loop that opened the connection. Reading never waits for the peer: frames are passed on in
the order they arrive. Data written within one turn of the loop is sent together.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final, Protocol, cast

from google.protobuf.message import Message

import interpulse
from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.transport.issued_tokens import IssuedTokens, secret_now
from interpulse.client.transport.registered_handlers import (
    ConsumerListener,
    ProducerListener,
    RegisteredHandlers,
    TopicListListener,
)
from interpulse.client.transport.wrong_addresses import no_handshake
from interpulse.model.errors import NotConnected, OperationTimeout, PulsarError
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.answers import ANSWERS, failure_of
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import Frame, MessageRun, ReceiptRun, Run
from interpulse.wire.protocols import ClientProtocol

_log = logging.getLogger(__name__)
_LINGER_S: Final = 1.0
_WRITE_BYTES_MAX: Final = 1024 * 1024
CLIENT_VERSION: Final = f"Interpulse-v{interpulse.__version__}"


class SpokenFor(Protocol):
    """Client of a proxy on whose behalf a connection sends requests."""

    async def original(self, *, ended: bool = False) -> commands.OriginalClient:
        """Return the client's role and credentials. With ``ended``, request new credentials from it.

        Raise NotConnected if the client has disconnected.
        """


@dataclass(slots=True)
class _Pending:
    future: asyncio.Future[pb.BaseCommand]
    timer: asyncio.TimerHandle
    accepted: asyncio.Future[bool] | None


class Connection(asyncio.Protocol):
    """Connection made by :meth:`open`.

    When it is lost, every request fails with NotConnected and listeners are notified.
    """

    def __init__(
        self,
        address: BrokerAddress,
        protocol: ClientProtocol,
        config: ClientConfig,
        issued: IssuedTokens | None,
        spoken_for: SpokenFor | None,
        logged_faults: set[BrokerAddress],
    ) -> None:
        self.address = address
        self._protocol = protocol
        self._config = config
        self._issued = issued
        self._spoken_for = spoken_for
        self._logged_faults = logged_faults
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._failure: PulsarError | None = None
        self._pending: dict[int, _Pending] = {}
        patience_ms = config.operation_timeout_ms
        self.producers: RegisteredHandlers[ProducerListener] = RegisteredHandlers(
            self, lambda producer_id: pb.CommandCloseProducer(producer_id=producer_id), patience_ms=patience_ms
        )
        self.consumers: RegisteredHandlers[ConsumerListener] = RegisteredHandlers(
            self, lambda consumer_id: pb.CommandCloseConsumer(consumer_id=consumer_id), patience_ms=patience_ms
        )
        self.topic_watchers: RegisteredHandlers[TopicListListener] = RegisteredHandlers(
            self, lambda watcher_id: pb.CommandWatchTopicListClose(watcher_id=watcher_id), patience_ms=patience_ms
        )
        self._outgoing: list[bytes | memoryview] = []
        self._outgoing_bytes = 0
        self._flush_scheduled = False
        self._writable = True
        self._tick: asyncio.TimerHandle | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._lost = asyncio.Event()
        self._broken: Exception | None = None

    @classmethod
    async def open(
        cls,
        address: BrokerAddress,
        config: ClientConfig,
        issued: IssuedTokens | None = None,
        spoken_for: SpokenFor | None = None,
        logged_faults: set[BrokerAddress] | None = None,
    ) -> Connection:
        """Connect and send the greeting. ``issued`` provides tokens if the credentials use an issuer.

        ``logged_faults`` has the addresses that broke the protocol since their last successful greeting: each fault is
        logged once. Raise NotConnected, OperationTimeout, or the broker's refusal of the greeting; AuthenticationError
        if there are no credentials to send.
        """
        loop = asyncio.get_running_loop()
        credentials = config.credentials
        secret = await secret_now(credentials, issued)
        protocol = ClientProtocol(
            client_version=CLIENT_VERSION,
            now=loop.time(),
            auth_method=credentials.auth_method if credentials else "none",
            auth_data=secret,
            proxy_to_broker_url=address.behind,
            original=None if spoken_for is None else await spoken_for.original(),
            keep_alive_interval=config.keep_alive_interval_ms / 1000,
        )
        context = config.encryption.context() if address.tls else None
        connection = cls(
            address, protocol, config, issued, spoken_for, set() if logged_faults is None else logged_faults
        )
        try:
            async with asyncio.timeout(config.connect_timeout_ms / 1000):
                await loop.create_connection(lambda: connection, address.host, address.port, ssl=context)
                await connection._ready
        except BaseException as error:
            connection.close()
            await connection.closed()
            if isinstance(error, TimeoutError):
                raise NotConnected(f"{address} did not answer within {config.connect_timeout_ms} ms") from None
            refusal = config.encryption.refusal(str(address), error)
            if refusal is None and address.tls:
                broken = connection._broken if isinstance(error, NotConnected) else error
                refusal = await config.encryption.unheard_refusal(str(address), address.host, address.port, broken)
            if refusal is not None:
                raise refusal from error
            if isinstance(error, OSError):
                foreign = no_handshake("pulsar+ssl", error) if address.tls else None
                reason = foreign or error.strerror or str(error) or type(error).__name__
                raise NotConnected(f"cannot connect to {address}: {reason}") from error
            raise
        return connection

    # ---- Properties of the broker

    @property
    def is_open(self) -> bool:
        return self._failure is None

    @property
    def peer_flags(self) -> pb.FeatureFlags:
        """Feature flags of the broker."""
        return self._protocol.peer_flags

    @property
    def message_bytes_max(self) -> int:
        """Maximum message size that the broker accepts."""
        return self._protocol.message_bytes_max

    # ---- Requests

    async def request(
        self, content: Message, *, timeout_ms: int | None = None, accepted: asyncio.Future[bool] | None = None
    ) -> pb.BaseCommand:
        """Send the command with this content under a new request id, and return its answer.

        ``accepted`` becomes True with the broker's first answer, and False if the broker refuses or the connection is
        lost. It outlives this call, because the answer may arrive after a timeout or a cancellation. Its owner cancels
        it to stop waiting. Raise the failure in the answer, OperationTimeout, or NotConnected when the connection is
        lost.
        """
        if self._failure is not None:
            raise NotConnected(str(self._failure))
        request_id = self._protocol.next_request_id()
        timeout_ms = self._config.operation_timeout_ms if timeout_ms is None else timeout_ms
        future: asyncio.Future[pb.BaseCommand] = self._loop.create_future()
        timer = self._loop.call_later(timeout_ms / 1000, self._expire, request_id, timeout_ms)
        self._pending[request_id] = _Pending(future, timer, accepted)
        try:
            content.request_id = request_id  # type: ignore[attr-defined]  # every request has it
            self.write(commands.encode(content))
            return await future
        finally:
            timer.cancel()
            if accepted is None or accepted.done():
                self._pending.pop(request_id, None)
            else:
                accepted.add_done_callback(lambda _: self._pending.pop(request_id, None))

    def write(self, *parts: bytes | memoryview) -> None:
        """Send bytes of complete frames. Do nothing once the connection is lost."""
        if self._failure is not None:
            return
        self._outgoing += parts
        self._outgoing_bytes += sum(map(len, parts))
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Pass the transport as much as it accepts.

        The rest waits here, because writes move a long transport buffer.
        """
        self._flush_scheduled = False
        while self._transport is not None and self._outgoing and self._writable:
            self._transport.writelines(self._next_parts())

    def _next_parts(self) -> list[bytes | memoryview]:
        if self._outgoing_bytes <= _WRITE_BYTES_MAX:
            parts, self._outgoing, self._outgoing_bytes = self._outgoing, [], 0
            return parts
        size = count = 0
        while size < _WRITE_BYTES_MAX and count < len(self._outgoing):
            size += len(self._outgoing[count])
            count += 1
        parts, self._outgoing = self._outgoing[:count], self._outgoing[count:]
        self._outgoing_bytes -= size
        return parts

    def _expire(self, request_id: int, timeout_ms: int) -> None:
        future = self._pending[request_id].future
        if not future.done():
            future.set_exception(OperationTimeout(f"{self.address} did not answer within {timeout_ms} ms"))

    # ---- Closing

    def close(self, failure: PulsarError | None = None) -> None:
        """Drop the connection immediately. Requests in flight fail with NotConnected."""
        self._fail(failure or NotConnected(f"the connection to {self.address} was closed"))

    async def closed(self) -> None:
        """Wait until all tasks of the connection have ended."""
        if self._renewal is not None:
            await asyncio.gather(self._renewal, return_exceptions=True)
        for registered in (self.producers, self.consumers, self.topic_watchers):
            await registered.closed()
        try:
            async with asyncio.timeout(_LINGER_S):
                await self._lost.wait()
        except TimeoutError:
            if self._transport is not None:
                self._transport.abort()
            await self._lost.wait()

    def _fail(self, failure: PulsarError) -> None:
        if self._failure is not None:
            return
        self._failure = failure
        if self._tick is not None:
            self._tick.cancel()
        if self._renewal is not None:
            self._renewal.cancel()
        if not self._ready.done():
            self._ready.set_exception(failure)
            self._ready.exception()
        for pending in self._pending.values():
            if not pending.future.done():
                pending.future.set_exception(NotConnected(str(failure)))
            if pending.accepted is not None and not pending.accepted.done():
                pending.accepted.set_result(False)
        self._end_transport()
        self._outgoing.clear()
        self.producers.disconnect_all()
        self.consumers.disconnect_all()
        self.topic_watchers.disconnect_all()

    def _end_transport(self) -> None:
        if self._transport is None:
            self._lost.set()
        elif self._writable:
            self._flush()
            self._transport.close()
        else:
            self._transport.abort()

    # ---- Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast("asyncio.Transport", transport)  # uvloop's is one without inheriting from it
        transport.set_write_buffer_limits(high=_WRITE_BYTES_MAX)
        if self._failure is not None:
            transport.abort()
            return
        self._say()
        self._tick = self._loop.call_at(self._protocol.next_tick, self._on_tick)

    def data_received(self, data: bytes) -> None:
        try:
            received = self._protocol.receive_data(data)
        except RemoteProtocolError as error:
            if self.address not in self._logged_faults:
                self._logged_faults.add(self.address)
                _log.warning("broker broke the protocol address=%s error=%s", self.address, error)
            self._fail(NotConnected(f"{self.address} broke the protocol: {error}"))
            return
        except PulsarError as refusal:
            self._fail(refusal)
            return
        if self._protocol.wants_credentials and self._renewal is None:
            self._renewal = self._loop.create_task(self._renew_credentials())
        self._say()
        if not self._ready.done() and self._protocol.is_connected:
            self._ready.set_result(None)
            self._logged_faults.discard(self.address)
        for item in received:
            if isinstance(item, Frame):
                self._on_frame(item)
            else:
                self._on_run(item)

    def connection_lost(self, exc: Exception | None) -> None:
        self._broken = exc
        reason = f": {exc}" if exc else ""
        refusal = None if self._ready.done() else self._config.encryption.refusal(str(self.address), exc)
        self._fail(refusal or NotConnected(f"the connection to {self.address} was lost{reason}"))
        self._lost.set()

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self._flush()

    async def _renew_credentials(self) -> None:
        """Answer the broker's request for new credentials, because those of the greeting have expired.

        If a proxy has forwarded its client's credentials, these are renewed.
        """
        method = None
        try:
            original = None if self._spoken_for is None else await self._spoken_for.original(ended=True)
            if original is not None and original.auth_method is not None:
                method, secret = original.auth_method, (original.auth_data or "").encode()
            else:
                secret = await secret_now(self._config.credentials, self._issued, refused=True)
        except PulsarError as failure:
            self._fail(failure)
            return
        self._protocol.answer_challenge(secret, method)
        self._renewal = None
        self._say()

    def _say(self) -> None:
        if data := self._protocol.data_to_send():
            self.write(data)

    def _on_tick(self) -> None:
        try:
            self._protocol.tick(self._loop.time())
        except RemoteProtocolError as error:
            self._fail(NotConnected(f"{self.address}: {error}"))
            return
        self._say()
        self._tick = self._loop.call_at(self._protocol.next_tick, self._on_tick)

    # ---- Frames

    def _on_run(self, run: Run) -> None:
        if isinstance(run, MessageRun):
            if (consumer := self.consumers.get(run.consumer_id)) is not None:
                consumer.on_messages(run)
        elif isinstance(run, ReceiptRun) and (producer := self.producers.get(run.producer_id)) is not None:
            producer.on_receipts(run)

    def _on_frame(self, frame: Frame) -> None:
        command = frame.command
        kind = command.type
        field = ANSWERS.get(kind)
        if field is not None:
            self._on_answer(command, getattr(command, field).request_id)
        elif kind == pb.BaseCommand.MESSAGE:
            if (consumer := self.consumers.get(command.message.consumer_id)) is not None:
                consumer.on_message(command.message, memoryview(frame.entry or b""))
        elif kind == pb.BaseCommand.SEND_RECEIPT:
            if (producer := self.producers.get(command.send_receipt.producer_id)) is not None:
                producer.on_receipt(command.send_receipt)
        else:
            self._on_rare_command(command)

    def _on_answer(self, command: pb.BaseCommand, request_id: int) -> None:
        pending = self._pending.get(request_id)
        if pending is None:
            return
        failure = failure_of(command)
        if pending.accepted is not None and not pending.accepted.done():
            pending.accepted.set_result(failure is None)
        if pending.future.done():
            return
        if command.type == pb.BaseCommand.PRODUCER_SUCCESS and not command.producer_success.producer_ready:
            pending.timer.cancel()  # waits for exclusive access: a second answer follows when it is granted
        elif failure is not None:
            pending.future.set_exception(failure)
        else:
            pending.future.set_result(command)

    def _on_rare_command(self, command: pb.BaseCommand) -> None:
        kind = command.type
        if kind == pb.BaseCommand.SEND_ERROR:
            if (producer := self.producers.get(command.send_error.producer_id)) is not None:
                producer.on_send_error(command.send_error)
        elif kind == pb.BaseCommand.CLOSE_PRODUCER:
            closed = command.close_producer
            listener = self.producers.take(closed.producer_id)
            self._disconnect(listener, closed.assignedBrokerServiceUrl, closed.assignedBrokerServiceUrlTls)
        elif kind == pb.BaseCommand.CLOSE_CONSUMER:
            gone = command.close_consumer
            consumer = self.consumers.take(gone.consumer_id)
            self._disconnect(consumer, gone.assignedBrokerServiceUrl, gone.assignedBrokerServiceUrlTls)
        elif kind == pb.BaseCommand.TOPIC_MIGRATED:
            self._on_topic_migrated(command.topicMigrated)
        else:
            self._on_news(command)

    def _on_topic_migrated(self, moved: pb.CommandTopicMigrated) -> None:
        handler_id = moved.resource_id
        listener: ProducerListener | ConsumerListener | None
        if moved.resource_type == pb.CommandTopicMigrated.Producer:
            unanswered = self.producers.opening_request(handler_id)
            listener = self.producers.take(handler_id)
        else:
            unanswered = self.consumers.opening_request(handler_id)
            listener = self.consumers.take(handler_id)
        service_url = moved.brokerServiceUrlTls if self.address.tls else moved.brokerServiceUrl
        if listener is not None:
            listener.on_redirected(service_url)
            listener.on_disconnected(None)
        if unanswered is not None:
            self._give_up_answer(unanswered, NotConnected(f"redirected to {service_url!r}"))

    def _give_up_answer(self, request_id: int, failure: PulsarError) -> None:
        pending = self._pending.get(request_id)
        if pending is not None and not pending.future.done():
            pending.future.set_exception(failure)

    def _on_news(self, command: pb.BaseCommand) -> None:
        """Handle commands for a consumer or watcher other than messages."""
        kind = command.type
        if kind == pb.BaseCommand.ACTIVE_CONSUMER_CHANGE:
            change = command.active_consumer_change
            if (consumer := self.consumers.get(change.consumer_id)) is not None:
                consumer.on_active_change(change.is_active)
        elif kind == pb.BaseCommand.REACHED_END_OF_TOPIC:
            if (consumer := self.consumers.get(command.reachedEndOfTopic.consumer_id)) is not None:
                consumer.on_end_of_topic()
        elif kind == pb.BaseCommand.WATCH_TOPIC_UPDATE:
            update = command.watchTopicUpdate
            if (watcher := self.topic_watchers.get(update.watcher_id)) is not None:
                watcher.on_update(update)
        else:
            _log.debug("command ignored type=%s address=%s", kind, self.address)

    def _disconnect(self, listener: ProducerListener | ConsumerListener | None, plain: str, tls: str) -> None:
        if listener is not None:
            listener.on_disconnected((tls if self.address.tls else plain) or None)
