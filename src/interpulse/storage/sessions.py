"""The session of a metadata store, which bounds the lifetime of ephemeral keys, and the watches of its keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Generic, Protocol, TypeVar

E = TypeVar("E")


class SessionState(Enum):
    """State of a session that a broker may rely on."""

    CONNECTED = "connected"
    """The ephemeral keys of this session exist."""
    SUSPENDED = "suspended"
    """The ephemeral keys still exist, but no server answers."""
    LOST = "lost"
    """The ephemeral keys are gone, or may be."""


class Session(Protocol):
    """The session of a metadata store. A lost session may come back, or be replaced by another."""

    @property
    def id(self) -> int:
        """The id, which changes after ephemeral keys were removed."""

    @property
    def state(self) -> SessionState:
        """The state by the clock, read now: no timer has to fire for it."""

    def holds(self) -> bool:
        """Return True if the ephemeral keys certainly exist now. Check this before each act that depends on one."""

    def on_change(self, callback: Callable[[SessionState], None]) -> Callable[[], None]:
        """Call back with every new state, in the event loop, and return the function that ends this. Must not raise.

        CONNECTED with the earlier `id` means that nothing was removed. The call may come later than `holds` turns
        false.
        """


class Callbacks(Generic[E]):
    """Functions to call with each event."""

    def __init__(self) -> None:
        self._callbacks: dict[object, Callable[[E], None]] = {}

    def add(self, callback: Callable[[E], None]) -> Callable[[], None]:
        """Add a callback and return the function that removes it. Calling that function again does nothing."""
        token = object()
        self._callbacks[token] = callback

        def cancel() -> None:
            self._callbacks.pop(token, None)

        return cancel

    def announce(self, event: E) -> None:
        """Call all callbacks with the event, in the order in which they were added."""
        for callback in list(self._callbacks.values()):
            callback(event)


class LastingSession:
    """The session of a store in this process. It ends when the store is closed, or when a test ends it."""

    def __init__(self, session_id: int = 1) -> None:
        self.id = session_id
        self.state = SessionState.CONNECTED
        self._watches = Callbacks[SessionState]()

    def holds(self) -> bool:
        return self.state is SessionState.CONNECTED

    def on_change(self, callback: Callable[[SessionState], None]) -> Callable[[], None]:
        return self._watches.add(callback)

    def lose(self) -> None:
        """Enter the state in which the ephemeral keys may be gone."""
        self._enter(SessionState.LOST)

    def resume(self, session_id: int) -> None:
        """Restore the session, or replace it by one with another id."""
        self.id = session_id
        self._enter(SessionState.CONNECTED)

    def _enter(self, state: SessionState) -> None:
        if state is not self.state:
            self.state = state
            self._watches.announce(state)


class Watches:
    """Callbacks by key prefix, called in the order in which they were added."""

    def __init__(self) -> None:
        self._watches: dict[object, tuple[str, Callable[[str], None]]] = {}

    def add(self, prefix: str, callback: Callable[[str], None]) -> Callable[[], None]:
        """Begin a watch and return the function that ends it. Calling that function again does nothing."""
        token = object()
        self._watches[token] = (prefix, callback)

        def cancel() -> None:
            self._watches.pop(token, None)

        return cancel

    def announce(self, keys: Iterable[str]) -> None:
        """Call every watcher whose prefix matches, once per key."""
        if not self._watches:
            return
        for key in keys:
            for prefix, callback in list(self._watches.values()):
                if key.startswith(prefix):
                    callback(key)

    def announce_all(self) -> None:
        """Call every watcher with its own prefix, since any key below it may have changed."""
        for prefix, callback in list(self._watches.values()):
            callback(prefix)
