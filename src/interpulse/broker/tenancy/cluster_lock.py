"""One broker per cluster: bundles are not shared out between brokers, so a second one is refused when it starts.

The lock is an ephemeral key. Without it nothing would be lost, since a log has one writer; but two brokers that serve
the same topics would take them from each other all the time.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from interpulse.model.errors import PreconditionFailed
from interpulse.storage.api import CommitConflict, Delete, MetadataStore, MetadataUnavailable, Put
from interpulse.storage.sessions import SessionState

__all__ = ["ClusterLock"]

log = logging.getLogger(__name__)

_KEY: Final = "/interpulse/broker"
_BROKERS: Final = "/loadbalance/brokers"
_UNSUPPORTED: Final = "ExtensibleLoadManager"
_RETRY_SECONDS: Final = 1.0


class ClusterLock:
    """Held while the broker serves, and taken again when its session was lost. ``on_lost``: another broker has it."""

    def __init__(self, metadata: MetadataStore, broker_id: str, on_lost: Callable[[], None]) -> None:
        """``broker_id``: host and port of the web service, by which a broker knows its earlier self."""
        self._metadata = metadata
        self._broker_id = broker_id
        self._on_lost = on_lost
        self._session_id = 0
        self._stop_following: Callable[[], None] = lambda: None
        self._retaking: asyncio.Task[None] | None = None

    async def take(self) -> None:
        """Raises PreconditionFailed if another broker serves the cluster."""
        await self._check_others()
        await self._take()
        self._stop_following = self._metadata.session.on_change(self._take_session_state)

    async def release(self) -> None:
        """Let another broker serve."""
        self._stop_following()
        if self._retaking is not None:
            self._retaking.cancel()
            await asyncio.wait([self._retaking])
        if self._session_id == self._metadata.session.id:
            with suppress(CommitConflict, MetadataUnavailable):  # it goes with the session
                await self._metadata.commit([Delete(_KEY)])

    async def _check_others(self) -> None:
        names = await self._metadata.children(_BROKERS)
        reports = await self._metadata.get_many([f"{_BROKERS}/{name}" for name in names])
        for report in reports.values():
            if _UNSUPPORTED.encode() in report.value:
                raise PreconditionFailed(
                    "the brokers of this cluster use the ExtensibleLoadManager (loadManagerClassName), which is not "
                    "supported: set it to org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl everywhere"
                )
        others = [name for name in names if name != self._broker_id]
        if others:
            raise PreconditionFailed(_refusal(", ".join(others), self._broker_id))

    async def _take(self) -> None:
        value = json.dumps({"brokerId": self._broker_id}, separators=(",", ":")).encode()
        session_id = self._metadata.session.id
        while True:
            try:
                await self._metadata.commit([Put(_KEY, value, ephemeral=True)])
                break
            except CommitConflict:
                found = await self._metadata.get(_KEY)
                if found is None:
                    continue
                owner = json.loads(found.value).get("brokerId", "")
                if owner != self._broker_id:
                    raise PreconditionFailed(_refusal(owner, self._broker_id)) from None
                # The earlier process cannot be there any more, since this one has its address.
                with suppress(CommitConflict):
                    await self._metadata.commit([Delete(_KEY)], {_KEY: found.version})
        self._session_id = session_id

    def _take_session_state(self, state: SessionState) -> None:
        lost = state is SessionState.CONNECTED and self._metadata.session.id != self._session_id
        if lost and (self._retaking is None or self._retaking.done()):
            self._retaking = asyncio.get_running_loop().create_task(self._take_again())

    async def _take_again(self) -> None:
        while True:
            try:
                await self._take()
            except PreconditionFailed as error:
                log.error("broker stops reason=%s", error)
                self._on_lost()
            except MetadataUnavailable as error:
                log.warning("lock of the cluster not taken again yet error=%s", error)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            return


def _refusal(owner: str, broker_id: str) -> str:
    return (
        f"broker {owner} serves this cluster, and a second one ({broker_id}) is not supported yet: stop that one; "
        "if it was killed, its lock ends with its session, after metadataStoreSessionTimeoutMillis"
    )
