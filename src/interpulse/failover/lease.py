"""Lease of a pair: an exclusive producer on the control topic of both sites, so that one operation runs at a time.

It ends with the process. Every act is preceded by a record through these producers: the receipt proves that the lease
is still held, and the record lets another machine go on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

from interpulse.client.closing import AsyncCloses
from interpulse.client.producing.producer import Producer
from interpulse.failover.control_topic import OPERATION, prepare_control_topic
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.site import SiteAccess
from interpulse.model.errors import ProducerBusy, ProducerFenced, PulsarError
from interpulse.model.names import TopicName

_SEND_TIMEOUT_MS: Final = 10_000
_REPLICATORS_S: Final = 30
"""Time until replicators have left a topic that is not replicated any more."""
_PAUSE_S: Final = 0.2
_PREFIX: Final = "interpulse.failover."


class Lease(AsyncCloses):
    """Lease of an operation on the sites that it changes."""

    def __init__(self, topic: TopicName, holder: str, began: str) -> None:
        """``holder`` and ``began`` are shown to others that ask for the lease."""
        self._topic = topic
        self._properties = {"holder": holder, "began": began}
        self._producers: dict[str, Producer] = {}
        self._closing = AsyncExitStack()

    async def acquire(self, sites: Sequence[SiteAccess], name: str) -> None:
        """Take the lease at every site, in this order.

        Raise OperationFailed if another operation holds it, naming the holder, and the errors of the sites.
        """
        for site in sites:
            await prepare_control_topic(site, self._topic)
        for site in sites:
            producer = await self._open(site, name)
            self._closing.push_async_callback(producer.close)
            self._producers[site.name] = producer

    async def _open(self, site: SiteAccess, name: str) -> Producer:
        """Open the producer, behind a replicator that found the new topic before its policy was set."""
        deadline = asyncio.get_running_loop().time() + _REPLICATORS_S
        while True:
            try:
                return await site.client.create_producer(
                    str(self._topic),
                    name=f"{_PREFIX}{name}",
                    access_mode="exclusive",
                    properties=self._properties,
                    send_timeout_ms=_SEND_TIMEOUT_MS,
                    batching_enabled=False,
                )
            except (ProducerBusy, ProducerFenced):
                holders = (await site.admin.topics.stats(self._topic))["publishers"]
            if self._is_leased(holders) or asyncio.get_running_loop().time() > deadline:
                raise OperationFailed(self._refusal(site, holders), Outcome.LEASED)
            await asyncio.sleep(_PAUSE_S)

    @staticmethod
    def _is_leased(holders: Sequence[Mapping[str, Any]]) -> bool:
        return any(each["producerName"].startswith(_PREFIX) for each in holders)

    def _refusal(self, site: SiteAccess, holders: Sequence[Mapping[str, Any]]) -> str:
        shown = [each["metadata"] for each in holders if each["producerName"].startswith(_PREFIX)]
        if not shown:
            names = ", ".join(str(each["producerName"]) for each in holders) or "another producer"
            return f"{site.name}: {names} is on {self._topic}, which is for this command alone: close it"
        holder = shown[0].get("holder", "an unknown holder")
        return (
            f"Another operation holds the lease at {site.name}: {holder}, since {shown[0].get('began', '?')}. "
            "Wait until it has ended, or end it there; then --resume goes on with it, and undo takes it back"
        )

    @property
    def sites(self) -> Sequence[str]:
        """Names of the sites at which it is held."""
        return tuple(self._producers)

    async def record(self, body: Mapping[str, Any]) -> None:
        """Store the state of the operation at every site. Raise OperationFailed if the lease was lost."""
        for name, producer in self._producers.items():
            try:
                await producer.send(json.dumps(body), key=OPERATION)
            except PulsarError as error:
                raise OperationFailed(
                    f"The lease at {name} is lost or cannot be proven: {error}. Nothing more is done; the same command "
                    "goes on",
                    Outcome.BROKEN_OFF,
                ) from error

    async def close(self) -> None:
        """Release the lease."""
        self._producers.clear()
        await self._closing.aclose()
