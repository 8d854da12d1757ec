"""The brokers registered in ZooKeeper, followed as they come and go."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Mapping
from typing import Final

from interpulse.client.config import BrokerAddress
from interpulse.proxy.brokers import RegisteredBroker
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.errors import NoNode, ZooKeeperError
from interpulse.storage.zookeeper.link import LinkConfig
from interpulse.storage.zookeeper.session import SessionEvent

_logger = logging.getLogger(__name__)

_BROKERS: Final = "/loadbalance/brokers"
_REREAD_SECONDS: Final = 30.0
"""The interval of further reads, for a broker whose report was incomplete. Watches report all other changes."""


class RegisteredBrokers:
    """The registered brokers, read from ``/loadbalance/brokers`` until `stop`.

    Source: docs/reference/cluster-protocol.md#load-report.
    """

    def __init__(
        self, client: ZooKeeperClient, on_change: Callable[[Mapping[str, RegisteredBroker]], None], tls: bool
    ) -> None:
        self._client = client
        self._report = on_change
        self._tls = tls
        self._changed = asyncio.Event()
        self._registered: dict[str, RegisteredBroker] = {}
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def follow(
        cls,
        url: str,
        on_change: Callable[[Mapping[str, RegisteredBroker]], None],
        *,
        tls: bool,
        session_timeout_ms: int,
    ) -> RegisteredBrokers:
        """Connect, read, and keep reading. Raise ZooKeeperError or ValueError."""
        client = await ZooKeeperClient.connect(url, LinkConfig(session_timeout_ms=session_timeout_ms))
        followed = cls(client, on_change, tls=tls)
        client.on_watch_event(lambda event: followed._changed.set())
        client.on_session(followed._on_session)
        try:
            await client.watch(_BROKERS)
            await followed._read()
        except BaseException:
            await client.close()
            raise
        followed._task = asyncio.create_task(followed._follow(), name="registered brokers")
        return followed

    async def stop(self) -> None:
        """End the session."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._client.close()

    def _on_session(self, event: SessionEvent) -> None:
        if event in (SessionEvent.RESUMED, SessionEvent.RENEWED):  # anything may have changed meanwhile
            self._changed.set()

    async def _follow(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_REREAD_SECONDS):  # wait_for of Python 3.11 may lose a cancellation
                    await self._changed.wait()
            self._changed.clear()
            try:
                await self._read()
            except ZooKeeperError as error:  # the last list stays valid
                _logger.warning("registered brokers not read reason=%s", error)
            except Exception:  # a bug of the proxy must not freeze its list of brokers
                _logger.exception("registered brokers not read")

    async def _read(self) -> None:
        try:
            ids = sorted((await self._client.children(_BROKERS)).names)
        except NoNode:
            ids = []
        nodes = await self._client.get_many([f"{_BROKERS}/{broker_id}" for broker_id in ids]) if ids else []
        brokers: dict[str, RegisteredBroker] = {}
        for broker_id, node in zip(ids, nodes, strict=True):
            try:
                if node is not None:
                    brokers[broker_id] = registered_broker(node.value, tls=self._tls)
            except (ValueError, RecursionError) as error:
                _logger.warning("registered broker ignored broker=%s reason=%s", broker_id, error)
        if brokers != self._registered:
            _logger.info("registered brokers count=%d brokers=%s", len(brokers), ", ".join(brokers) or "none")
            self._report(brokers)
            self._registered = brokers


def registered_broker(report: bytes, *, tls: bool) -> RegisteredBroker:
    """Return the addresses in a broker's load report. Raise ValueError if it has no usable ones."""
    fields = json.loads(report)
    suffix = "Tls" if tls else ""
    if not isinstance(fields, dict):
        raise ValueError("its load report is no JSON object")
    service_url = fields.get(f"pulsarServiceUrl{suffix}")
    if not service_url:
        raise ValueError(f"its load report has no pulsarServiceUrl{suffix}")
    return RegisteredBroker(
        BrokerAddress.parse(service_url), str(fields.get(f"webServiceUrl{suffix}") or "").rstrip("/")
    )
