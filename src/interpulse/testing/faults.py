"""Faults that a test can cause at its broker."""

from __future__ import annotations

import difflib
import errno
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

from interpulse.broker.app import BrokerApp
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.stores import in_data_directory
from interpulse.model.errors import InvalidTopicName, ServerError, error_for_wire_code
from interpulse.model.names import TopicName
from interpulse.storage.segments.files import AppendFile, DiskFiles, Files, ReadFile, Room
from interpulse.testing.fault import Fault
from interpulse.testing.faulty_handlers import (
    COMMANDS,
    REFUSABLE,
    CommandFault,
    FaultyHandlers,
    command_name,
    names_topic,
)
from interpulse.wire import pulsar_api_pb2 as pb

T = TypeVar("T")
_COMMANDS: Final = {command_name(kind): kind for kind in COMMANDS}
# Errors that only brokers with transactions answer.
_ERRORS: Final = {error.name: error for error in ServerError if error_for_wire_code(error, "").wire_code == error}


class FaultyFiles:
    """Wraps another `Files`, and refuses writes while a fault is on. Reading and removing go on."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.full: Fault | None = None
        """The active fault, which counts the refused groups of entries."""

    def create(self, path: Path) -> AppendFile:
        self._refuse(path, counted=True)
        return _FaultyAppendFile(self, path, self._files.create(path))

    def open(self, path: Path) -> ReadFile:
        return self._files.open(path)

    def names(self, directory: Path) -> list[str]:
        return self._files.names(directory)

    def rewrite(self, path: Path, offset: int, content: bytes) -> None:
        self._files.rewrite(path, offset, content)

    def rename(self, source: Path, target: Path) -> None:
        self._files.rename(source, target)

    def unlink(self, path: Path) -> None:
        self._files.unlink(path)

    def sync_directory(self, directory: Path) -> None:
        self._files.sync_directory(directory)

    def room(self, directory: Path) -> Room:
        return self._files.room(directory)

    def _refuse(self, path: Path, *, counted: bool) -> None:
        full = self.full
        if full is not None and (full.act() if counted else full.active):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


class _FaultyAppendFile:
    def __init__(self, owner: FaultyFiles, path: Path, file: AppendFile) -> None:
        self._owner = owner
        self._path = path
        self._file = file
        self.sync = file.sync
        self.close = file.close

    def write(self, content: bytes) -> None:
        self._owner._refuse(self._path, counted=False)  # the index, which a group of entries does not need
        self._file.write(content)

    def write_durably(self, content: bytes) -> None:
        self._owner._refuse(self._path, counted=True)
        self._file.write_durably(content)


class Faults:
    """Makes a broker fail as a test requests, from the call until the returned fault ends.

    Commands and errors have the names of the protocol (``BaseCommand.Type`` and ``ServerError`` of PulsarApi.proto). An
    unknown name raises ValueError with the nearest one. ``topic`` limits a fault to one topic with all its partitions.
    With ``times`` the fault ends by itself after that many actions. Faults outlive ``broker.restart()``.
    """

    def __init__(self, in_loop: Callable[[Callable[[], Any]], Any]) -> None:
        """``in_loop`` calls a function in the event loop of the broker, from any thread, and returns its result."""
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

        ``message`` is the text of the error. A refused SEND stores nothing. A refused ACK that asks for no answer is
        lost.
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
        """Delay ``command`` by ``seconds``, for example ``delay("SEND", 2)``.

        Later commands are delayed by the same time, not queued behind each other. Those of one connection keep their
        order.
        """
        kind = _known(command, _COMMANDS, "a command that a client sends")
        if not 0 < seconds < math.inf:
            raise ValueError(f"seconds={seconds}: must be more than 0")
        return self._on_command(f"delay({command!r}, {seconds})", kind, times, topic, delay_seconds=seconds)

    def lose_receipts(self, times: int, *, topic: str | None = None) -> Fault:
        """Store the next messages, but lose ``times`` receipts (SEND_RECEIPT) on the way to the producers.

        Official clients resend messages without a receipt when they reconnect, for example after
        :meth:`drop_connections`.
        """
        return self._on_command(f"lose_receipts({times})", pb.BaseCommand.SEND, times, topic, loses_receipts=True)

    def drop_connections(self) -> int:
        """Close every connection of the binary protocol; returns how many there were. Clients may reconnect."""
        dropped: int = self._in_loop(lambda: self._app.parts.binary_server.drop_all("dropped by a fault of the test"))
        return dropped

    def disk_full(self, *, times: int | None = None) -> Fault:
        """Fill the disk that stores messages, until the fault ends. Stored messages can still be read.

        Producers are refused as on a full disk, and accepted again within a second after the end. Topics, policies and
        cursors can still be changed, and messages that all subscriptions have acknowledged may be deleted immediately.
        ``times`` counts attempts to write: groups of messages, and checks for room.
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
        """Build a broker with these faults. :meth:`drop_connections` applies to the newest one."""
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
    by_case = {name.casefold(): name for name in known}
    return by_case[difflib.get_close_matches(name.casefold(), by_case, n=1, cutoff=0.0)[0]]


def _topic(text: str, kind: int) -> TopicName:
    if not names_topic(kind):
        raise ValueError(f"topic={text!r}: {command_name(kind)} is about no topic")
    try:
        return TopicName.parse(text)
    except InvalidTopicName as error:
        raise ValueError(f"topic={text!r}: {error}") from error
