"""The settings of loaded topics, read at the load and again when policies change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from interpulse.broker.live.registry.background_tasks import BackgroundTasks
from interpulse.broker.live.registry.topic_tasks import TOPICS_AT_ONCE, AnyTopic, loaded_in_turns
from interpulse.broker.live.settings import TopicSettings
from interpulse.model.errors import PulsarError
from interpulse.model.names import NamespaceName, TopicName

log = logging.getLogger(__name__)


class SettingsRefresh:
    """The refresh of settings of loaded topics."""

    def __init__(
        self,
        topics: Mapping[TopicName, AnyTopic],
        read: Callable[[TopicName], Awaitable[TopicSettings]],
        tasks: BackgroundTasks,
    ) -> None:
        """``topics`` is a live view of the loaded topics; ``read`` returns the effective policies of a topic."""
        self._topics = topics
        self._read = read
        self._tasks = tasks
        self._newest = TopicSettings()
        self._applying = asyncio.Lock()
        self._to_apply: dict[tuple[NamespaceName | None, TopicName | None], asyncio.Task[PulsarError | None]] = {}

    async def of(self, name: TopicName) -> TopicSettings:
        """Return the settings of a topic. Equal settings of consecutive topics share one object."""
        settings = await self._read(name)
        if settings != self._newest:
            self._newest = settings
        return self._newest

    async def refresh(self, namespace: NamespaceName | None, base: TopicName | None) -> None:
        """Apply the new settings to the loaded topics of a namespace, of one base name, or to all.

        They are in force on return. Topics store their changes together, in groups. Raise the first failure after every
        topic was tried.
        """
        failure = await asyncio.shield(self.begin(namespace, base))
        if failure is not None:
            raise failure

    def begin(self, namespace: NamespaceName | None, base: TopicName | None) -> asyncio.Task[PulsarError | None]:
        """Apply the new settings in a task, which callers share until it begins to read."""
        concerned = (namespace, base)
        if concerned not in self._to_apply:
            self._to_apply[concerned] = self._tasks.begin(self._apply_new_settings(namespace, base))
        return self._to_apply[concerned]

    async def _apply_new_settings(self, namespace: NamespaceName | None, base: TopicName | None) -> PulsarError | None:
        """Return the first failure. The log gets each one."""
        failures: list[PulsarError] = []
        async with self._applying:
            del self._to_apply[namespace, base]
            concerned = [
                topic
                async for topic in loaded_in_turns(self._topics)
                if namespace in (None, topic.name.namespace_name) and base in (None, topic.name.base)
            ]
            for first in range(0, len(concerned), TOPICS_AT_ONCE):
                some = concerned[first : first + TOPICS_AT_ONCE]
                failures += filter(None, await asyncio.gather(*map(self._apply_settings, some)))
        return next(iter(failures), None)

    async def _apply_settings(self, topic: AnyTopic) -> PulsarError | None:
        """Return the failure, None if the settings are in force."""
        try:
            settings = await self.of(topic.name)
            if self._topics.get(topic.name) is topic:  # it may be closed by now
                await topic.apply(settings)
        except PulsarError as error:
            log.error("policies not applied topic=%s error=%s", topic.name, error)
            return error
        return None
