"""One client: socket <-> ServerProtocol <-> handlers.

Invariants:

* commands start in the order in which they came; commands that need no waiting also end in that order;
* a failure answers the request it belongs to, and a violation of the protocol closes this connection alone;
* memory for one client is bounded: the connection stops reading above the limits of pending publishes, of requests in
progress and of waiting output, and a consumer gets no more entries while output waits;
* the connection pauses reading while its client publishes faster than a policy allows, and refuses nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

from interpulse.authentication.authentication import PeerCertificate
from interpulse.authentication.certificates import peer_certificate
from interpulse.broker.binary.transport.context import BinaryContext, ConnectionLimits, Handlers
from interpulse.broker.binary.transport.flow_control import (
    OUTPUT,
    PUBLISHES,
    RATE,
    REQUESTS,
    Output,
    PendingPublishes,
    Reading,
)
from interpulse.broker.binary.transport.session import Session
from interpulse.broker.binary.transport.sinks import OpenConsumer, OpenProducer, TopicWatcher
from interpulse.eager_start import start_eagerly
from interpulse.model.errors import PulsarError, TopicMoved, UnknownError
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.answers import error_response, redirection, request_id_of, requester_of
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import Frame, Received
from interpulse.wire.protocols import ServerProtocol

_logger = logging.getLogger(__name__)

# The connection stops reading above this: its client sends requests and does not read the answers.
_OUTPUT_BYTES_MAX: Final = 32 * 1024 * 1024
# Concurrent requests of one client; more would block the event loop for others too long.
_REQUESTS_MAX: Final = 500
# Requests that come by the thousand; a task costs as much as the answer.
_STARTED_EAGERLY: Final = frozenset({pb.BaseCommand.PARTITIONED_METADATA, pb.BaseCommand.LOOKUP})
# Seconds that a stopping broker waits for running requests.
_SETTLE_SECONDS: Final = 0.5
# The connection is aborted if its client has not read the last frames by then.
_CLOSING_SECONDS_MAX: Final = 3.0


class ClientConnection(asyncio.Protocol):
    """The broker's side of one client's connection. Handlers reach the broker through its ``context``."""

    output: Output

    def __init__(
        self,
        context: BinaryContext,
        limits: ConnectionLimits,
        handlers: Handlers,
        new_protocol: Callable[[float], ServerProtocol],
        on_made: Callable[[ClientConnection], None],
        on_lost: Callable[[ClientConnection], None],
    ) -> None:
        self.context = context
        self.limits = limits
        self._serving = context.serving
        self.loop = asyncio.get_running_loop()
        self.address = ""
        self.ip = ""
        self.certificate: PeerCertificate | None = None
        """The certificate of the client."""
        self.lost = False
        self.let_in: bool | None = None
        """True for an accepted client, False for a refused one, None before that."""
        self.producers: dict[int, OpenProducer] = {}
        self.consumers: dict[int, OpenConsumer] = {}
        self.topic_watchers: dict[int, TopicWatcher] = {}
        self.session: Session | None = None
        """The client's identity; None while authentication is off."""
        self.pending_publishes = PendingPublishes(
            count_max=limits.pending_publishes_max,
            bytes_max=limits.pending_publish_bytes_max,
            buffer=context.publish_buffer,
            on_answered=self._publishes_answered,
        )
        self.opening_producers: dict[int, asyncio.Task[None]] = {}
        self.opening_consumers: dict[int, asyncio.Task[None]] = {}
        self._handlers = handlers
        self.protocol = new_protocol(self.loop.time())
        self._on_made = on_made
        self._on_lost = on_lost
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed_producers: dict[int, float] = {}  # time of closing, oldest first
        self._transport: asyncio.Transport
        self._reading: Reading
        self._coming: deque[Received] = deque()  # unhandled frames of this read
        self._unhandled: list[Received] = []  # frames that wait until reading resumes
        self._throttle_timer: asyncio.TimerHandle | None = None  # ends the wait for the publish rate
        self._output_high = False
        self._liveness: asyncio.Future[bool] | None = None
        self._keep_alive_timer: asyncio.TimerHandle | None = None

    # The transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's class does not inherit from it
        self._transport.set_write_buffer_limits(high=self.limits.output_bytes_high, low=self.limits.output_bytes_low)
        self._reading = Reading(self._transport)
        self.output = Output(self.loop, self._transport)
        peer = transport.get_extra_info("peername")
        self.ip = str(peer[0]) if peer else ""
        self.address = f"/{peer[0]}:{peer[1]}" if peer else ""
        self.certificate = peer_certificate(transport)
        self._keep_alive_timer = self.loop.call_at(self.protocol.next_tick, self._tick)
        self._on_made(self)

    def data_received(self, data: bytes) -> None:
        if self.lost:
            return
        if data and self._liveness is not None:
            self._liveness.set_result(True)
            self._liveness = None
        try:
            frames = self.protocol.receive_data(data)
            self._handle(self._unhandled + frames if self._unhandled else frames)
            self._send_own()
        except RemoteProtocolError as error:
            self._send_own()
            self.drop(str(error))
        except Exception:  # a bug ends this connection only
            _logger.exception("connection failed address=%s", self.address)
            self.drop("fault of the broker")
        self._hold_above_limits()

    def pause_writing(self) -> None:
        self._output_high = True

    def resume_writing(self) -> None:
        self._output_high = False
        self._reading.release(OUTPUT)
        self.resume_sending()

    def resume_sending(self) -> None:
        for open_consumer in list(self.consumers.values()):
            open_consumer.consumer.resume()
        for watcher in self.topic_watchers.values():
            watcher.send_changes()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        if self.session is not None:
            self.session.close()
        if self._keep_alive_timer is not None:
            self._keep_alive_timer.cancel()
        if self._throttle_timer is not None:
            self._throttle_timer.cancel()
        if self._liveness is not None:
            self._liveness.set_result(False)
            self._liveness = None
        producers, self.producers = self.producers, {}
        consumers, self.consumers = self.consumers, {}
        watchers, self.topic_watchers = self.topic_watchers, {}
        for open_producer in producers.values():
            open_producer.producer.close()
            open_producer.sink.abandon()
        for open_consumer in consumers.values():
            open_consumer.consumer.close()
        for watcher in watchers.values():
            watcher.close()
        self.pending_publishes.close()
        _logger.debug("connection closed address=%s cause=%s", self.address, exc)
        self._on_lost(self)

    # Handlers and sinks call.

    @property
    def writable(self) -> bool:
        """False while too much output waits to read more entries for this client."""
        if self.output.bytes_collected > self.limits.output_bytes_high:
            self.output.flush()  # the transport calls pause_writing immediately if that was too much
        return not self._output_high and (self._serving is None or self._serving())

    def accept(self) -> None:
        """Accept the client, then handle the commands that followed CONNECT."""
        self.let_in = True
        self.protocol.accept()
        self._send_own()
        self.loop.call_soon(self.data_received, b"")

    def refuse(self, error: PulsarError, reason: str) -> None:
        """Refuse the client with ``error``; ``reason`` is for the log."""
        self.let_in = False
        self.protocol.refuse(error.wire_code, str(error))
        self._send_own()
        self.drop(reason)

    def turn_away(self, error: PulsarError) -> None:
        """Refuse a client before its first command: the connection limit is reached."""
        self.let_in = False
        self.output.send(commands.error_of(-1, error))
        self.close()

    def close_with_error(self, error: PulsarError, reason: str) -> None:
        self.output.send(commands.error_of(-1, error))
        self.drop(reason)

    def settle(self, work: Coroutine[Any, Any, None]) -> None:
        left = start_eagerly(work)
        if left is not None:
            self._keep(self.loop.create_task(self._settled(left)))

    async def _settled(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:  # a bug ends this connection only
            _logger.exception("credentials not settled address=%s", self.address)
            self.drop("fault of the broker")

    @property
    def accepts_auth_challenge(self) -> bool:
        return self.protocol.accepts_auth_challenge

    def challenge(self, auth_method: str) -> None:
        self.protocol.challenge(auth_method)
        self._send_own()

    def calls_itself_replicator(self, producer_name: str) -> bool:
        claimed = producer_name.startswith(self.context.replicator_prefix)
        return claimed and (self.session is None or self.session.is_replicator)

    def throttle(self, wait_ms: int) -> None:
        """Stop reading and handling for ``wait_ms``. The longest of several waits counts; 0 ends it."""
        if self.lost:
            return
        timer, until = self._throttle_timer, self.loop.time() + wait_ms / 1000
        if timer is None:
            if wait_ms:
                self._unhandled = [*self._coming]
                self._coming.clear()
                self._reading.hold(RATE)
                self._throttle_timer = self.loop.call_at(until, self._unthrottle)
        elif not wait_ms or until > timer.when():
            timer.cancel()
            self._throttle_timer = self.loop.call_at(until, self._unthrottle)

    @property
    def throttled(self) -> bool:
        """True while reading is paused because the client publishes faster than a policy or a limit allows."""
        return not self._reading.held_by.isdisjoint((RATE, PUBLISHES))

    def forget_producer(self, producer_id: int) -> None:
        """Abandon the pending entries of a closed producer, and ignore its late SENDs for a while."""
        opened = self.producers.pop(producer_id, None)
        if opened is None:
            return
        opened.sink.abandon()
        self._ignore_sends(producer_id)

    def _ignore_sends(self, producer_id: int) -> None:
        now = self.loop.time()
        self._closed_producers.pop(producer_id, None)
        self._closed_producers[producer_id] = now
        while (oldest := next(iter(self._closed_producers.items())))[1] < now - self.limits.keep_alive_seconds:
            del self._closed_producers[oldest[0]]

    def recently_closed(self, producer_id: int) -> bool:
        closed_at = self._closed_producers.get(producer_id)
        return closed_at is not None and closed_at > self.loop.time() - self.limits.keep_alive_seconds

    async def is_alive(self) -> bool:
        """Ping the client, and drop it if no answer comes in time. A client that is not read counts as alive."""
        if self.lost:
            return False
        if self._reading.held_by & {REQUESTS, PUBLISHES, RATE}:
            return True
        if self._liveness is None:
            self._liveness = self.loop.create_future()
            self.protocol.ping()
            self._send_own()
        try:
            async with asyncio.timeout(self.limits.liveness_check_seconds):
                return await asyncio.shield(self._liveness)
        except TimeoutError:
            self.drop("no answer to the liveness check when another client asked for the name of its producer")
            return False

    def drop(self, reason: str) -> None:
        """Send the collected answers, and close this connection because of ``reason``."""
        if not self.lost:
            self.context.dropped.note(self.ip, reason, let_in=self.let_in is True, peer=self.address)
            self.close()

    def close(self, patience: float = _CLOSING_SECONDS_MAX) -> None:
        """Write the waiting output, then close the socket; output not read after ``patience`` seconds is dropped."""
        self.lost = True
        self.output.flush()
        self._transport.close()
        self.loop.call_later(patience, self._transport.abort)

    async def tasks_done(self) -> None:
        """Wait until no request is in progress; slow ones, such as calls of other clusters, are cancelled."""
        while self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_SETTLE_SECONDS)
            for task in late:
                task.cancel()

    # Inside.

    def _handle(self, frames: list[Received]) -> None:
        if self._throttle_timer is not None:
            self._unhandled = frames
            return
        self._unhandled = []
        self._coming = coming = deque(frames)  # `throttle` takes the rest
        inline, runs, work_on = self._handlers
        while coming:
            frame = coming.popleft()
            if not isinstance(frame, Frame):
                coming.extendleft(reversed(runs[type(frame)](self, frame)))
                continue
            command = frame.command
            kind = command.type
            handler = inline.get(kind)
            if handler is not None:
                handler(self, frame)
            elif len(self._tasks) < _REQUESTS_MAX:
                self._start(command, work_on(self, command))
            else:
                self._unhandled = [frame, *coming]
                coming.clear()

    def _publishes_answered(self) -> None:
        if PUBLISHES in self._reading.held_by and self.pending_publishes.has_room:
            self._reading.release(PUBLISHES)

    def _request_answered(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if REQUESTS in self._reading.held_by and len(self._tasks) <= _REQUESTS_MAX // 2:
            self._reading.release(REQUESTS)
            self.loop.call_soon(self.data_received, b"")

    def _unthrottle(self) -> None:
        self._throttle_timer = None
        self.data_received(b"")
        if self._throttle_timer is None:
            self._reading.release(RATE)

    def _start(self, command: pb.BaseCommand, work: Coroutine[Any, Any, None]) -> None:
        answered = self._answered(command, work)
        if command.type in _STARTED_EAGERLY:
            left = start_eagerly(answered)
            if left is None:
                return
            answered = left
        self._keep(self.loop.create_task(answered))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._request_answered)

    async def _answered(self, command: pb.BaseCommand, work: Coroutine[Any, Any, None]) -> None:
        """Run a request. This is the error boundary: every failure becomes an answer."""
        try:
            await work
        except PulsarError as error:
            self.answer_failure(command, error)
        except RemoteProtocolError as error:
            self.drop(str(error))
        except Exception:  # a bug must not end the other requests of the client
            _logger.exception("request failed address=%s type=%s", self.address, command.type)
            self.answer_failure(command, UnknownError(f"The broker failed, request {request_id_of(command)}"))

    def answer_failure(self, command: pb.BaseCommand, error: PulsarError) -> None:
        _logger.debug("request refused address=%s type=%s reason=%s", self.address, command.type, error)
        self.context.inconsistencies.note(error, lambda: f"{requester_of(command)} at {self.address}")
        if isinstance(error, TopicMoved) and self.protocol.accepts_redirect:
            if command.type == pb.BaseCommand.PRODUCER:
                self._ignore_sends(command.producer.producer_id)
            self.output.send(redirection(command, error))
        else:
            self.output.send(error_response(command, error))

    def _hold_above_limits(self) -> None:
        if self.lost:
            return
        if self.pending_publishes.full:
            self._reading.hold(PUBLISHES)
        if self._unhandled and self._throttle_timer is None:
            self._reading.hold(REQUESTS)
        if self._output_high and self.output.bytes_waiting > _OUTPUT_BYTES_MAX:
            self._reading.hold(OUTPUT)

    def _send_own(self) -> None:
        """Send the frames of the protocol itself: CONNECTED, PING, PONG."""
        data = self.protocol.data_to_send()
        if data:
            self.output.send(data)

    def _tick(self) -> None:
        try:
            self.protocol.tick(self.loop.time(), reading=not self._reading.held_by)
        except RemoteProtocolError as error:
            self.drop(str(error))
            return
        self._send_own()
        self._keep_alive_timer = self.loop.call_at(self.protocol.next_tick, self._tick)
