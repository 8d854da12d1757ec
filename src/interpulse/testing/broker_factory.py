"""Several brokers for one test."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import count
from pathlib import Path

from interpulse.testing.broker import InProcessBroker
from interpulse.testing.settings import Setting


class BrokerFactory:
    """Starts a broker with every call, each with its own data below ``directory``. :meth:`close` stops all of them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = count(1)
        self._running = ExitStack()

    def __call__(self, **settings: Setting) -> InProcessBroker:
        """Start a broker. ``settings`` are keys of ``broker.conf``, as in ``factory(clusterName="east")``."""
        broker = InProcessBroker(self._directory / f"pulsar-{next(self._numbers)}", settings)
        return self._running.enter_context(broker)

    def close(self) -> None:
        """Stop every broker, the newest first."""
        self._running.close()
