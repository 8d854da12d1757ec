"""The session of the store on ZooKeeper, as brokers see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from interpulse.storage.sessions import SessionState, SessionWatches
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.session import SessionEvent

_STATES: Final = {
    SessionEvent.DISCONNECTED: SessionState.SUSPENDED,
    SessionEvent.SUSPECT: SessionState.LOST,
    SessionEvent.RESUMED: SessionState.CONNECTED,
    SessionEvent.EXPIRED: SessionState.LOST,
    SessionEvent.RENEWED: SessionState.CONNECTED,
    SessionEvent.ENDED: SessionState.LOST,
}


class StoreSession:
    """The client's session, lost from the moment at which the servers *may* remove its nodes."""

    def __init__(self, client: ZooKeeperClient) -> None:
        self._client = client
        self._reported = SessionState.CONNECTED
        self._watches = SessionWatches()
        client.on_session(self._take_event)

    @property
    def id(self) -> int:
        return self._client.session.id

    @property
    def state(self) -> SessionState:
        if not self.holds():
            return SessionState.LOST
        return SessionState.CONNECTED if self._client.connected else SessionState.SUSPENDED

    def holds(self) -> bool:
        return self._client.session.holds()

    def on_change(self, callback: Callable[[SessionState], None]) -> Callable[[], None]:
        return self._watches.add(callback)

    def close(self) -> None:
        """End the session with its store."""
        self._report(SessionState.LOST)

    def _take_event(self, event: SessionEvent) -> None:
        state = _STATES[event]
        self._report(SessionState.LOST if state is SessionState.SUSPENDED and not self.holds() else state)

    def _report(self, state: SessionState) -> None:
        """Report a new state. A connection that ends once the session is lost is nothing new."""
        if state is self._reported or (self._reported is SessionState.LOST and state is SessionState.SUSPENDED):
            return
        self._reported = state
        self._watches.announce(state)
