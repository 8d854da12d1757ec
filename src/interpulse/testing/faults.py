"""The faults that a test can cause at its broker."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, TypeVar

from interpulse.broker.app import BrokerApp
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.stores import in_data_directory
from interpulse.model.errors import InvalidTopicName, ServerError
from interpulse.model.names import TopicName
from interpulse.model.received_errors import error_for_wire_code
from interpulse.storage.segments.files import DiskFiles
from interpulse.testing.fault import Fault
from interpulse.testing.faulty_files import FaultyFiles
from interpulse.testing.faulty_handlers import (
    COMMANDS,
    REFUSABLE,
    CommandFault,
    FaultyHandlers,
    command_name,
    names_topic,
)
from interpulse.wire import pulsar_api_pb2 as pb

__all__ = ["Faults", "InLoop"]

T = TypeVar("T")

_COMMANDS: Final = {command_name(kind): kind for kind in COMMANDS}
# Errors that only brokers with transactions give.
_ERRORS: Final = {each.name: each for each in ServerError if error_for_wire_code(each, "").wire_code == each}


class InLoop(Protocol):
    """How the event loop of the broker is reached from any thread, its own included."""

    def __call__(self, work: Callable[[], T]) -> T:
        """Call ``work`` there and give its result."""


class Faults:
    """Makes a broker fail in the ways a test asks for, from the call on until the fault that is returned ends.

    Commands and errors have the names of the protocol (``BaseCommand.Type`` and ``ServerError`` of PulsarApi.proto);
    unknown ones are a ValueError that names the nearest. ``topic`` narrows a fault down to one topic, with all its
    partitions. ``times``: it ends by itself after acting so often. Faults outlive ``broker.restart()``.
    """

    def __init__(self, in_loop: InLoop) -> None:
        self._in_loop = in_loop
        self._handlers = FaultyHandlers()
        self._files = FaultyFiles(DiskFiles())
        self._on: list[Fault] = []

    def refuse(
        self,
        command: str,
        error: str,
        *,
        times: int | None = None,
        topic: str | None = None,
        message: str | None = None,
    ) -> Fault:
        """Answer ``command`` with ``error``, for example ``refuse("PRODUCER", "ServiceNotReady", times=3)``.

        ``message`` is the sentence of the error. A refused SEND stores nothing; an ACK of a client that asks for no
        answer to it is lost.
        """
        kind = _known(command, _COMMANDS, "a command that a client sends")
        if kind not in REFUSABLE:
            raise ValueError(f"{command} has no answer, so it cannot be refused; it can be delayed")
        code = _known(error, _ERRORS, "an error of the protocol")
        sentence = message if message is not None else f"{command} is refused by a fault of the test"
        return self._on_command(
            f"refuse({command!r}, {error!r})", kind, times, topic, error_code=code, error_message=sentence
        )

    def delay(self, command: str, seconds: float, *, times: int | None = None, topic: str | None = None) -> Fault:
        """Work on ``command`` so much later, for example ``delay("SEND", 2)``.

        Commands that come meanwhile are delayed as well, not queued up behind each other. Those of one connection keep
        their order.
        """
        kind = _known(command, _COMMANDS, "a command that a client sends")
        if not 0 < seconds < math.inf:
            raise ValueError(f"seconds={seconds}: must be more than 0")
        return self._on_command(f"delay({command!r}, {seconds})", kind, times, topic, delay_seconds=seconds)

    def lose_receipts(self, times: int, *, topic: str | None = None) -> Fault:
        """Store the next messages, but lose ``times`` receipts (SEND_RECEIPT) on their way to the producers.

        Official clients send again what has no receipt when they connect anew, for example after
        :meth:`drop_connections`.
        """
        return self._on_command(f"lose_receipts({times})", pb.BaseCommand.SEND, times, topic, loses_receipts=True)

    def drop_connections(self) -> int:
        """Close every connection of the binary protocol; returns how many there were. Clients may reconnect."""
        return self._in_loop(lambda: self._app.parts.binary_server.drop_all("dropped by a fault of the test"))

    def disk_full(self, *, times: int | None = None) -> Fault:
        """Fill the disk that messages are stored on, until the fault ends. Stored messages can still be read.

        Producers are refused as on a disk that is really full, and accepted again within a second after its end.
        Topics, policies and cursors can still be changed, and messages that all subscriptions have acknowledged may be
        deleted at once. ``times`` counts attempts to write: groups of messages, and checks whether there is room again.
        """
        if self._files.full is not None and self._files.full.active:
            raise ValueError("the disk is full already")
        self._files.full = fault = Fault("broker.faults.disk_full()", times, lambda _: None)
        self._on.append(fault)
        return fault

    def clear(self) -> None:
        """End every fault."""
        for fault in self._on:
            fault.end()
        self._on.clear()

    def build(self, config: BrokerConfig) -> BrokerApp:
        """A broker that has these faults; the one built last is the one whose connections are dropped."""
        self._app = BrokerApp(config, handlers=self._handlers.handlers, open_stores=in_data_directory(self._files))
        return self._app

    def _on_command(self, name: str, kind: int, times: int | None, topic: str | None, **what: Any) -> Fault:
        def end(released: bool) -> None:
            self._in_loop(lambda: self._handlers.remove(kind, described, released=released))

        fault = Fault(f"broker.faults.{name}", times, end)
        described = CommandFault(fault, None if topic is None else _topic(topic, kind), **what)
        self._in_loop(lambda: self._handlers.add(kind, described))
        self._on.append(fault)
        return fault


def _known(name: str, known: dict[str, int] | dict[str, ServerError], what: str) -> int:
    if name not in known:
        raise ValueError(f"{name!r} is not {what}; the nearest is {_nearest(name, known)}")
    return known[name]


def _nearest(name: str, known: Iterable[str]) -> str:
    by_case = {each.casefold(): each for each in known}
    return by_case[difflib.get_close_matches(name.casefold(), by_case, n=1, cutoff=0.0)[0]]


def _topic(text: str, kind: int) -> TopicName:
    if not names_topic(kind):
        raise ValueError(f"topic={text!r}: {command_name(kind)} is about no topic")
    try:
        return TopicName.parse(text)
    except InvalidTopicName as error:
        raise ValueError(f"topic={text!r}: {error}") from error
