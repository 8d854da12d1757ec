"""The network link to a broker, which blocking code cuts."""

from __future__ import annotations

import asyncio
import threading

from tests.support.tcp_relay import TcpRelay


class Link:
    """Relays to a broker, in a thread of its own, until `close`. The broker has to advertise ``address``."""

    def __init__(self, target: str) -> None:
        """``target``: host and port."""
        self._relay = TcpRelay(target)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="link")
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._relay.listen(), self._loop).result()

    @property
    def address(self) -> str:
        """Host and port."""
        return self._relay.address

    def hold(self) -> None:
        """Let nothing pass."""
        self._loop.call_soon_threadsafe(self._relay.hold)

    def cut(self) -> None:
        """Lose what is held, break every connection, and let later ones pass."""
        self._loop.call_soon_threadsafe(self._relay.cut)
        self._loop.call_soon_threadsafe(self._relay.let_go)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._relay.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
