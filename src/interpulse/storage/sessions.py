"""The session that ephemeral keys live as long as."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

__all__ = ["LastingSession", "Session", "SessionState", "SessionWatches"]


class SessionState(Enum):
    """What a broker may rely on."""

    CONNECTED = "connected"
    """The ephemeral keys of this session stand."""
    SUSPENDED = "suspended"
    """They stand still, but no server answers."""
    LOST = "lost"
    """They are gone, or may be."""


class Session(Protocol):
    """The session of a metadata store. After it was lost it may come back, or another one takes its place."""

    @property
    def id(self) -> int:
        """Another one after ephemeral keys were removed."""

    @property
    def state(self) -> SessionState:
        """As the clock says now: no timer has to fire in time for it."""

    def holds(self) -> bool:
        """Whether the ephemeral keys surely stand now. Look before each act that rests on one of them."""

    def on_change(self, callback: Callable[[SessionState], None]) -> Callable[[], None]:
        """Call back with every new state, in the event loop; must not raise. Returns the function that ends it.

        CONNECTED with the `id` of before: nothing was removed. The call may come later than `holds` tells.
        """


class SessionWatches:
    """Who is told of new states."""

    def __init__(self) -> None:
        self._callbacks: dict[object, Callable[[SessionState], None]] = {}

    def add(self, callback: Callable[[SessionState], None]) -> Callable[[], None]:
        """Begin; the returned function ends it."""
        token = object()
        self._callbacks[token] = callback

        def cancel() -> None:
            self._callbacks.pop(token, None)

        return cancel

    def announce(self, state: SessionState) -> None:
        """Tell everyone."""
        for callback in list(self._callbacks.values()):
            callback(state)


class LastingSession:
    """The session of a store in this process: it ends when the store is closed, or when a test ends it."""

    def __init__(self, session_id: int = 1) -> None:
        self.id = session_id
        self.state = SessionState.CONNECTED
        self._watches = SessionWatches()

    def holds(self) -> bool:
        return self.state is SessionState.CONNECTED

    def on_change(self, callback: Callable[[SessionState], None]) -> Callable[[], None]:
        return self._watches.add(callback)

    def close(self) -> None:
        """The store is closed."""
        self.lose()

    def lose(self) -> None:
        """Its keys may be gone."""
        self._enter(SessionState.LOST)

    def resume(self, session_id: int) -> None:
        """It is back, or with another id: another session takes its place."""
        self.id = session_id
        self._enter(SessionState.CONNECTED)

    def _enter(self, state: SessionState) -> None:
        if state is not self.state:
            self.state = state
            self._watches.announce(state)
