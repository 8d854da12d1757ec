"""Handlers of the binary protocol that refuse or delay commands, and lose receipts of messages.

The connections of a broker share one table of handlers, which changes while they use it. A command without a fault goes
straight to its ordinary handler. Everything here runs in the event loop of the broker. Delayed commands without waiting
(SEND, ACK, FLOW, ...) keep their order per connection, and the command that closes their producer or consumer waits for
them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from interpulse.broker.binary.handlers import AWAITING, INLINE, RUNS, work_on
from interpulse.broker.binary.transport.context import CommandConnection, Handlers
from interpulse.broker.binary.transport.sinks import OpenConsumer, OpenProducer
from interpulse.model.errors import PulsarError, error_for_wire_code
from interpulse.model.names import TopicName
from interpulse.testing.fault import Fault
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import AckRun, FlowRun, Frame, LookupRun, PartitionsRun, Received, Run, SendRun

_TYPES: Final = pb.BaseCommand

_INLINE_FIELDS: Final[dict[int, str]] = {
    _TYPES.CONNECT: "connect",
    _TYPES.SEND: "send",
    _TYPES.ACK: "ack",
    _TYPES.FLOW: "flow",
    _TYPES.REDELIVER_UNACKNOWLEDGED_MESSAGES: "redeliverUnacknowledgedMessages",
}
COMMANDS: Final[dict[int, str]] = _INLINE_FIELDS | {kind: name for kind, (name, *_) in AWAITING.items()}
"""Client commands that a fault may affect, with the field that holds each."""
REFUSABLE: Final = COMMANDS.keys() - {_TYPES.FLOW, _TYPES.REDELIVER_UNACKNOWLEDGED_MESSAGES}
"""Commands that can be refused. The others have no answer that could carry the error."""
_CLOSED_BY: Final[dict[int, int]] = {_TYPES.CLOSE_PRODUCER: _TYPES.SEND, _TYPES.CLOSE_CONSUMER: _TYPES.ACK}

_KIND_OF_RUN: Final[dict[type, int]] = {
    SendRun: _TYPES.SEND,
    AckRun: _TYPES.ACK,
    FlowRun: _TYPES.FLOW,
    PartitionsRun: _TYPES.PARTITIONED_METADATA,
    LookupRun: _TYPES.LOOKUP,
}

Receipts: TypeAlias = Sequence[tuple[int, int, int, int]]


@dataclass(frozen=True, slots=True)
class CommandFault:
    """The effect of a fault on a command: a delay, a refusal, or the loss of its receipt."""

    fault: Fault
    topic: TopicName | None = None
    """The affected topic with all its partitions. None affects every topic."""
    delay_seconds: float = 0.0
    error_code: int | None = None
    error_message: str = ""
    loses_receipts: bool = False

    def concerns(self, topic: TopicName | None) -> bool:
        """Return True if the fault affects this topic."""
        return self.topic is None or (topic is not None and self.topic in (topic, topic.base))

    def error(self) -> PulsarError | None:
        """Return a new error for each refusal, or None."""
        return None if self.error_code is None else error_for_wire_code(self.error_code, self.error_message)


class _Waiting(NamedTuple):
    frame: Frame
    refusal: PulsarError | None
    timer: asyncio.TimerHandle


_Delayed: TypeAlias = "WeakKeyDictionary[CommandConnection, deque[_Waiting]]"


class FaultyHandlers:
    """The table of handlers for a broker. Faults can be added while the broker runs."""

    def __init__(self) -> None:
        self._inline = dict(INLINE)
        self._faults: dict[int, list[CommandFault]] = {}
        self._delayed: dict[int, _Delayed] = {kind: WeakKeyDictionary() for kind in _INLINE_FIELDS}
        self._pauses: dict[int, set[asyncio.Event]] = {kind: set() for kind in COMMANDS}
        runs = {kind_of_run: partial(self._on_run, kind) for kind_of_run, kind in _KIND_OF_RUN.items()}
        self.handlers = Handlers(self._inline, runs, self._work_on)

    def add(self, kind: int, fault: CommandFault) -> None:
        """Let this fault act on commands of this type from now on."""
        self._faults.setdefault(kind, []).append(fault)
        if kind in _INLINE_FIELDS:
            self._inline[kind] = self._on_inline

    def remove(self, kind: int, fault: CommandFault, *, released: bool) -> None:
        """Remove a fault. Delayed commands are handled when they are due, or immediately if ``released``."""
        left = self._faults.get(kind, [])
        if fault in left:
            left.remove(fault)
        if not left:
            self._faults.pop(kind, None)
            self._restore(kind)
        if released and not any(fault.delay_seconds for fault in left):
            self._release(kind)

    def _restore(self, kind: int) -> None:
        if kind in _INLINE_FIELDS and kind not in self._faults and not any(self._delayed[kind].values()):
            self._inline[kind] = INLINE[kind]

    def _release(self, kind: int) -> None:
        for connection, waiting in list(self._delayed.get(kind, {}).items()):
            while waiting:
                waiting[0].timer.cancel()
                self._handle_first(connection, kind)
        for over in self._pauses[kind]:
            over.set()

    # commands that do not wait

    def _on_run(self, kind: int, connection: CommandConnection, run: Run) -> Sequence[Received]:
        faulty = kind in self._faults or self._inline.get(kind) is not INLINE.get(kind)
        return run.frames() if faulty else RUNS[type(run)](connection, run)

    def _on_inline(self, connection: CommandConnection, frame: Frame) -> None:
        kind = frame.command.type
        if kind == _TYPES.SEND:
            self._watch_receipts(connection, frame.command.send.producer_id)
        delay, refusal = self._verdict(connection, frame.command)
        waiting = self._delayed[kind].setdefault(connection, deque())
        if not delay and not waiting:
            self._handle(connection, frame, refusal)
            return
        due = connection.loop.time() + delay
        if waiting:
            due = max(due, waiting[-1].timer.when())
        timer = connection.loop.call_at(due, self._handle_first, connection, kind)
        waiting.append(_Waiting(frame, refusal, timer))
        self._inline[kind] = self._on_inline  # even if it acted for the last time: nothing may overtake the frame

    def _handle_first(self, connection: CommandConnection, kind: int) -> None:
        waiting = self._delayed[kind][connection]
        frame, refusal, _ = waiting.popleft()
        if not waiting:
            self._restore(kind)
        if connection.lost:
            return
        try:
            self._handle(connection, frame, refusal)
        except RemoteProtocolError as error:
            connection.drop(str(error))

    def _handle(self, connection: CommandConnection, frame: Frame, refusal: PulsarError | None) -> None:
        if refusal is None:
            INLINE[frame.command.type](connection, frame)
        else:
            _refuse_inline(connection, frame.command, refusal)

    # commands that are answered by a task

    def _work_on(self, connection: CommandConnection, command: pb.BaseCommand) -> Coroutine[Any, Any, None]:
        if command.type in self._faults or self._frames_before(connection, command.type):
            return self._work_late(connection, command)
        return work_on(connection, command)

    async def _work_late(self, connection: CommandConnection, command: pb.BaseCommand) -> None:
        delay, refusal = self._verdict(connection, command)
        if delay:
            await self._pause(connection, command.type, delay)
        while waiting := self._frames_before(connection, command.type):
            await self._pause(connection, _CLOSED_BY[command.type], waiting[-1].timer.when() - connection.loop.time())
        if refusal is not None:
            raise refusal
        await work_on(connection, command)

    async def _pause(self, connection: CommandConnection, kind: int, seconds: float) -> None:
        """Wait until the delay is over or the faults behind it end. Needs no task: a LOOKUP has none."""
        over = asyncio.Event()
        timer = connection.loop.call_later(seconds, over.set)
        self._pauses[kind].add(over)
        try:
            await over.wait()
        finally:
            timer.cancel()
            self._pauses[kind].discard(over)

    def _frames_before(self, connection: CommandConnection, kind: int) -> deque[_Waiting] | None:
        """Return the delayed frames that the end of their producer or consumer must not overtake."""
        closed = _CLOSED_BY.get(kind)
        return None if closed is None else self._delayed[closed].get(connection)

    def _verdict(self, connection: CommandConnection, command: pb.BaseCommand) -> tuple[float, PulsarError | None]:
        """Return the longest delay of a command, and the first error that refuses it."""
        delay, refusal = 0.0, None
        topic = _topic_of(connection, command)
        for item in tuple(self._faults.get(command.type, ())):
            if item.loses_receipts or not item.concerns(topic):
                continue
            if item.error_code is None:
                delay = max(delay, item.delay_seconds) if item.fault.act() else delay
            elif refusal is None and item.fault.act():
                refusal = item.error()
        return delay, refusal

    # receipts

    def _watch_receipts(self, connection: CommandConnection, producer_id: int) -> None:
        opened = connection.producers.get(producer_id)
        if opened is None or isinstance(opened.sink.encode_receipts, _WatchedReceipts):
            return
        if any(item.loses_receipts for item in self._faults.get(_TYPES.SEND, ())):
            topic = opened.topic.name
            opened.sink.encode_receipts = _WatchedReceipts(
                opened.sink.encode_receipts, lambda: self._receipt_lost(topic)
            )

    def _receipt_lost(self, topic: TopicName) -> bool:
        faults = tuple(self._faults.get(_TYPES.SEND, ()))
        return any(item.loses_receipts and item.concerns(topic) and item.fault.act() for item in faults)


@dataclass(slots=True)
class _WatchedReceipts:
    """Encodes the receipts of one producer, without the lost ones."""

    encode: Callable[[Receipts], bytes]
    lost: Callable[[], bool]

    def __call__(self, receipts: Receipts) -> bytes:
        return self.encode([receipt for receipt in receipts if not self.lost()])


def command_name(kind: int) -> str:
    """Return the name of a command in the protocol."""
    return _TYPES.DESCRIPTOR.enum_types_by_name["Type"].values_by_number[kind].name


def names_topic(kind: int) -> bool:
    """Return True if a command names its topic, directly or by its producer or consumer."""
    content = getattr(pb.BaseCommand(), COMMANDS[kind])
    return any(hasattr(content, name) for name in ("topic", "producer_id", "consumer_id"))


def _topic_of(connection: CommandConnection, command: pb.BaseCommand) -> TopicName | None:
    content = getattr(command, COMMANDS[command.type])
    if hasattr(content, "topic"):
        return TopicName.parse(content.topic)
    opened: OpenProducer | OpenConsumer | None = None
    if hasattr(content, "producer_id"):
        opened = connection.producers.get(content.producer_id)
    elif hasattr(content, "consumer_id"):
        opened = connection.consumers.get(content.consumer_id)
    return None if opened is None else opened.topic.name


def _refuse_inline(connection: CommandConnection, command: pb.BaseCommand, error: PulsarError) -> None:
    """Answer in the form of the command; an ACK that asks for no answer is lost."""
    if command.type == _TYPES.CONNECT:
        connection.refuse(error, "refused by a fault of the test")
    elif command.type == _TYPES.SEND:
        send = command.send
        sequence_id = max(send.sequence_id, send.highest_sequence_id)
        connection.output.send(commands.send_error(send.producer_id, sequence_id, error.wire_code, str(error)))
    elif command.ack.HasField("request_id"):
        connection.output.send(commands.ack_response(command.ack.consumer_id, command.ack.request_id, error))
