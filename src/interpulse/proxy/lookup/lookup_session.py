"""The connection of a client that looks up topics, and the answers of the proxy."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, cast

from interpulse.authentication.authentication import BadCredentials
from interpulse.model.errors import AuthenticationError, PulsarError, ServiceNotReady, UnknownError
from interpulse.proxy.access import AuthenticatedClient
from interpulse.proxy.lookup.batches import answer_batch
from interpulse.proxy.lookup.questions import UNREACHABLE, Questions, ask
from interpulse.proxy.meter import QUESTIONS, ProxyMeter
from interpulse.serving.admission import LookupPermits
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.answers import error_response, request_id_of
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import Frame, encode_command
from interpulse.wire.protocols import ServerProtocol

_logger = logging.getLogger(__name__)

_REQUESTS_MAX: Final = 1000
"""The most open requests of one client; above that its socket is not read."""
_WRITE_BYTES_HIGH: Final = 1024 * 1024


class Answers:
    """The answers to clients, a bounded number at once."""

    def __init__(self, permits: LookupPermits, meter: ProxyMeter) -> None:
        self._permits = permits
        self._meter = meter

    async def answer(self, questions: Questions, command: pb.BaseCommand) -> bytes:
        """Return the frame for one command of `QUESTIONS`. Raise PulsarError: TooManyRequests if no permit is left."""
        kind = command.type
        self._meter.requests[kind] += 1
        if kind == pb.BaseCommand.BATCH_LOOKUP:
            self._meter.batch_lookup_topics += len(command.batchLookupTopic.topics)
        if not self._permits.left:
            self._meter.rejected[kind] += 1
        with self._permits:
            try:
                return await _ANSWERS[kind](questions, command)
            except UNREACHABLE as error:
                raise ServiceNotReady(str(error)) from error


async def _lookup(questions: Questions, command: pb.BaseCommand) -> bytes:
    """Answer a lookup. Both addresses are the one that the proxy uses, as in Pulsar's proxy.

    The client connects to the proxy in any case, and names the broker by either address.
    """
    question = command.lookupTopic
    url = str(await questions.find(question))
    answer = commands.lookup_answer(broker_url=url, broker_url_tls=url, proxy_through_service_url=True)
    return answer.frame(question.request_id)


async def _partitions(questions: Questions, command: pb.BaseCommand) -> bytes:
    question = command.partitionMetadata
    answer = commands.partitioned_metadata_answer(await questions.partitions(question))
    return answer.frame(question.request_id)


async def _topics(questions: Questions, command: pb.BaseCommand) -> bytes:
    question = command.getTopicsOfNamespace
    answer = await ask(await questions.connection(), question)
    answer.getTopicsOfNamespaceResponse.request_id = question.request_id
    return encode_command(answer)


async def _schema(questions: Questions, command: pb.BaseCommand) -> bytes:
    question = command.getSchema
    answer = await ask(await questions.connection(), question)
    answer.getSchemaResponse.request_id = question.request_id
    return encode_command(answer)


_ANSWERS: Final[Mapping[int, Callable[[Questions, pb.BaseCommand], Awaitable[bytes]]]] = {
    pb.BaseCommand.LOOKUP: _lookup,
    pb.BaseCommand.PARTITIONED_METADATA: _partitions,
    pb.BaseCommand.GET_TOPICS_OF_NAMESPACE: _topics,
    pb.BaseCommand.GET_SCHEMA: _schema,
    pb.BaseCommand.BATCH_LOOKUP: lambda questions, command: answer_batch(questions, command.batchLookupTopic),
}


class LookupSession(asyncio.Protocol):
    """A connection taken over from the greeting, which has accepted the client."""

    def __init__(
        self,
        transport: asyncio.Transport,
        protocol: ServerProtocol,
        questions: Questions,
        answers: Answers,
        on_lost: Callable[[], None],
        client: AuthenticatedClient | None,
        meter: ProxyMeter,
    ) -> None:
        """``client`` is None if the proxy does not authenticate clients."""
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._protocol = protocol
        self._questions = questions
        self._answers = answers
        self._on_lost = on_lost
        self._client = client
        self._meter = meter
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: deque[Frame] = deque()
        self._writable = True
        self._closing: asyncio.TimerHandle | None = None
        transport.set_write_buffer_limits(high=_WRITE_BYTES_HIGH)
        self._timer = self._loop.call_at(protocol.next_tick, self._tick)
        if client is not None:
            client.watch(self)

    @property
    def lost(self) -> bool:
        return self._transport.is_closing()

    @property
    def accepts_auth_challenge(self) -> bool:
        return self._protocol.accepts_auth_challenge

    def challenge(self, auth_method: str) -> None:
        """Ask the client for new credentials."""
        self._protocol.challenge(auth_method)
        self._flush()

    def drop(self, reason: str) -> None:
        """Send what is left, and close the connection. ``reason`` is for the log."""
        if self._transport.is_closing():
            return
        peer = self._transport.get_extra_info("peername")
        self._meter.dropped.note(str(peer[0]) if peer else "", reason, let_in=True)
        self._flush()
        self.close(1.0)

    def data_received(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        try:
            self._waiting += cast("list[Frame]", self._protocol.receive_data(data))  # runs were not requested
            self._work()
        except RemoteProtocolError as error:
            self.drop(str(error))
        self._flush()
        self._hold_or_go_on()

    def pause_writing(self) -> None:
        self._writable = False
        self._hold_or_go_on()

    def resume_writing(self) -> None:
        self._writable = True
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        if self._closing is not None:
            self._closing.cancel()
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()
        self._on_lost()

    def close(self, seconds: float) -> None:
        """Send what is pending, for at most ``seconds``, and close."""
        if self._closing is None:
            self._transport.close()
            self._closing = self._loop.call_later(seconds, self._transport.abort)

    def _work(self) -> None:
        while self._waiting and len(self._tasks) < _REQUESTS_MAX and self._writable:
            command = self._waiting.popleft().command
            if command.type == pb.BaseCommand.AUTH_RESPONSE and self._client is not None:
                self._start(self._renew(self._client, command.authResponse.response))
                continue
            if command.type not in QUESTIONS:
                raise RemoteProtocolError(
                    f"{pb.BaseCommand.Type.Name(command.type)} on a connection without a broker: a client names one in "
                    "CONNECT (proxy_to_broker_url)"
                )
            self._start(self._answer(command))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._waiting:
            self._go_on()

    def _go_on(self) -> None:
        if not self._transport.is_closing():
            self.data_received(b"")

    def _hold_or_go_on(self) -> None:
        if self._transport.is_closing():
            return
        if self._waiting or not self._writable:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    async def _renew(self, client: AuthenticatedClient, response: pb.AuthData) -> None:
        try:
            await client.renew(response.auth_method_name, response.auth_data)
        except BadCredentials as error:
            self._send(commands.error_of(-1, error))
            self.drop(error.detail)
        except Exception:  # a bug of the proxy ends only this connection
            _logger.exception("credentials not settled")
            self.drop("bug of the proxy")

    async def _answer(self, command: pb.BaseCommand) -> None:
        try:
            frame = await self._answers.answer(self._questions, command)
        except AuthenticationError as error:
            reported = error if self._client is None else AuthenticationError("Failed to authenticate")
            self._send(error_response(command, reported))
            self.drop(f"a broker does not accept the credentials: {error}")
        except PulsarError as error:
            _logger.debug("question refused type=%s reason=%s", command.type, error)
            self._send(error_response(command, error))
        except Exception:  # a bug of the proxy must not end the client's other requests
            _logger.exception("question failed type=%s", command.type)
            self._send(error_response(command, UnknownError(f"The proxy failed, request {request_id_of(command)}")))
        else:
            self._send(frame)

    def _send(self, frame: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(frame)

    def _flush(self) -> None:
        data = self._protocol.data_to_send()
        if data:
            self._send(data)

    def _tick(self) -> None:
        try:
            self._protocol.tick(self._loop.time(), reading=self._transport.is_reading())
        except RemoteProtocolError as error:
            self.drop(str(error))
            return
        self._flush()
        self._timer = self._loop.call_at(self._protocol.next_tick, self._tick)
