"""Topics with changed cursors, until the cursors are stored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from interpulse.broker.live.host import HostedTopic
from interpulse.broker.live.registry.background_tasks import BackgroundTasks
from interpulse.broker.live.registry.topic_tasks import TOPICS_AT_ONCE
from interpulse.model.errors import PulsarError

log = logging.getLogger(__name__)


class CursorFlushes:
    """The schedule of changed cursors. A topic whose cursors cannot be stored is retried with the next call."""

    def __init__(self, is_loaded: Callable[[HostedTopic], bool], tasks: BackgroundTasks) -> None:
        self._is_loaded = is_loaded
        self._tasks = tasks
        self._changed: set[HostedTopic] = set()
        self._flushing: set[HostedTopic] = set()
        self._unstored: set[HostedTopic] = set()
        """Topics whose last attempt failed. The log gets one line for each."""

    def note_change(self, topic: HostedTopic) -> None:
        """Store the cursors of this topic with the next `flush_all`."""
        self._changed.add(topic)

    def note_failure(self, topic: HostedTopic) -> None:
        """Note that the topic failed and will be closed."""
        self._unstored.discard(topic)

    def forget(self, topic: HostedTopic) -> None:
        """Note that the topic is closed."""
        self._changed.discard(topic)
        self._unstored.discard(topic)

    def has_changes(self, topic: HostedTopic) -> bool:
        """Return True if cursors of the topic wait to be stored."""
        return topic in self._changed

    async def flush_all(self, *, within_seconds: float | None = None) -> None:
        """Store every cursor that changed. The store syncs changes that arrive together once.

        With ``within_seconds``, topics that take longer go on in the background. Later calls leave them out until then.
        """
        changed = self._changed - (set() if within_seconds is None else self._flushing)
        self._changed -= changed
        flushes: list[asyncio.Task[None]] = []
        try:
            for number, topic in enumerate(changed, 1):
                flush = self._tasks.own(asyncio.create_task(self._flush_again_if_it_fails(topic)))
                flushes.append(flush)
                if number % TOPICS_AT_ONCE == 0:
                    await asyncio.sleep(0)
            if not flushes:
                return
            done, late = await asyncio.wait(flushes, timeout=within_seconds)
        except BaseException:
            self._changed |= changed
            for flush in flushes:
                flush.cancel()
            raise
        for flush in late:
            flush.add_done_callback(self._tasks.log_failure)
        failures = [
            failure for flush in done if not flush.cancelled() and isinstance(failure := flush.exception(), Exception)
        ]
        if failures:
            raise ExceptionGroup("cursors of topics are not stored", failures)

    async def _flush_again_if_it_fails(self, topic: HostedTopic) -> None:
        self._flushing.add(topic)
        try:
            await self.flush(topic)
        except BaseException:
            self._changed.add(topic)
            raise
        finally:
            self._flushing.discard(topic)

    async def flush(self, topic: HostedTopic) -> None:
        try:
            await topic.flush()
        except PulsarError as error:
            if not self._is_loaded(topic):
                log.info("cursors not stored, the topic is closed topic=%s error=%s", topic.name, error)
                return
            self._changed.add(topic)
            if topic not in self._unstored:
                log.warning("cursors not stored, retrying every second topic=%s error=%s", topic.name, error)
                self._unstored.add(topic)
            return
        if topic in self._unstored:
            log.info("cursors stored again topic=%s", topic.name)
            self._unstored.discard(topic)
