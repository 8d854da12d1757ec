"""Heartbeats: small messages of the job to a topic of the source, which show the delay when there is no traffic.

The job that sends them also receives them on the target, so only its own clock counts.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from contextlib import suppress
from typing import Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.client.producing.producer import Producer
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyExists, PulsarError
from interpulse.model.names import TopicName
from interpulse.spark.job.pipeline_config import PipelineConfig
from interpulse.spark.job.routes.route import Emit, Route
from interpulse.spark.job.routes.route_topics import RouteTopics
from interpulse.spark.writing.broker_target import last_position

log = logging.getLogger(__name__)

_RUN: Final = secrets.token_hex(8)
"""Id of this process. Heartbeats of an earlier process are unrelated to this clock."""


async def send_heartbeats(config: PipelineConfig, admin: AdminClient) -> None:
    """Send heartbeats until cancelled, if the file asks for them. A refusal is logged once and retried."""
    topic, refused = config.heartbeat_topic, ""
    if topic is None:
        return
    async with config.source.client() as client:
        producer: Producer | None = None
        while True:
            try:
                if producer is None:
                    with suppress(AlreadyExists):
                        await admin.topics.create(topic)
                    producer = await client.create_producer(str(topic), batching_enabled=False)
                await producer.send(f"{_RUN} {time.monotonic_ns()}".encode())
                refused = ""
            except PulsarError as problem:
                if str(problem) != refused:
                    log.warning("heartbeat not sent topic=%s error=%s", topic, problem)
                refused = str(problem)
            await asyncio.sleep(config.heartbeat.interval_ms / 1000)


class HeartbeatArrivals:
    """Listener for heartbeats on the target of one route, from when the topic is replicated."""

    def __init__(self, route: Route, emit: Emit) -> None:
        self._route = route
        self._emit = emit
        self._listening: asyncio.Task[None] | None = None

    async def follow(self, topics: RouteTopics) -> None:
        """Start to listen, or start again after the target was away."""
        topic = self._route.config.heartbeat_topic
        if topic is None or (self._listening is not None and not self._listening.done()):
            return
        state = topics.states.get(topic)
        if state is None or not state.is_ready:
            return
        self._listening = asyncio.create_task(self._listen(topics.session, self._route.target_name(topic)))

    async def _listen(self, session: Session, topic: TopicName) -> None:
        try:
            end = await last_position(session, topic)
            async with EntryReader(
                session, topic, after=end, subscription_prefix="interpulse-heartbeat", reconnect_timeout_ms=None
            ) as reader:
                await reader.open()
                async for entry in reader:
                    self._take(bytes(entry.parsed.payload), time.monotonic_ns())
        except PulsarError as problem:
            log.warning("heartbeats are not heard cluster=%s error=%s", self._route.remote, problem)

    def _take(self, payload: bytes, now_ns: int) -> None:
        run, _, sent_ns = payload.decode(errors="replace").partition(" ")
        if run == _RUN:
            delay = (now_ns - int(sent_ns)) // 1_000_000
            self._emit("heartbeat", delayMs=delay)

    async def close(self) -> None:
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
