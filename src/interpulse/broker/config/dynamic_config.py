"""Settings that change while the broker runs.

The store has the dynamic values as one flat JSON object, under Pulsar's own key. They override the settings of the
start. A change replaces the whole `BrokerConfig` and calls its watchers.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.committer import Committer, Records
from interpulse.broker.config.broker_config import BrokerConfig, dynamic_keys, settings_by_key
from interpulse.broker.config.pulsar_keys import PULSAR_KEYS, READ_AT_START, reason_without_effect
from interpulse.model.changes import Decision, SetDynamicConfiguration
from interpulse.model.errors import MetadataError, PreconditionFailed
from interpulse.serving.settings import ConfigError, nearest
from interpulse.storage.api import MetadataStore
from interpulse.storage.metadata.session_bounded import leave_if_session_lost

logger = logging.getLogger(__name__)

_CLAMPING: Final = frozenset({"defaultNumPartitions", "maxNumPartitionsPerPartitionedTopic"})


class DynamicConfig:
    """The current settings, `config`, and changes of the dynamic ones."""

    def __init__(self, store: MetadataStore, startup: BrokerConfig) -> None:
        self._store = store
        self._committer = Committer(store)
        self._startup = startup
        self._watchers: list[Callable[[BrokerConfig], None]] = []
        self.config = startup
        self._changed = False
        self._reading: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Apply the stored values. One that is no longer valid is logged and ignored."""
        for key, value in (await self.values()).items():
            if (reason := reason_without_effect(key)) is not None:
                _warn_without_effect(key, value, reason)
                continue
            try:
                self._startup.changed({key: value})
            except (ConfigError, KeyError) as problem:
                logger.warning("ignored a stored dynamic setting key=%s value=%s reason=%s", key, value, problem)
        await self._apply_stored()

    async def _apply_stored(self) -> None:
        self._apply(await self.values())

    def follow(self) -> Callable[[], None]:
        """Apply changes of other brokers and tools until the caller calls the returned function."""
        end_watch = self._store.watch(keys.CONFIGURATION, self._on_changed)

        def cancel() -> None:
            end_watch()
            if self._reading is not None:
                self._reading.cancel()

        return cancel

    def _on_changed(self, key: str) -> None:
        self._changed = True
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._take_over(), name="dynamic configuration")

    async def _take_over(self) -> None:
        while self._changed:
            self._changed = False
            try:
                await leave_if_session_lost(self._apply_stored())
            except MetadataError as error:
                logger.error("dynamic settings not read error=%s", error)

    def watch(self, callback: Callable[[BrokerConfig], None]) -> None:
        """Call back with the new settings after each change. A callback must not raise."""
        self._watchers.append(callback)

    async def values(self) -> dict[str, str]:
        """Return the stored values by key."""
        stored = await self._store.get(keys.CONFIGURATION)
        return dict(json.loads(stored.value)) if stored else {}

    async def set(self, key: str, value: str) -> None:
        """Store a value of a dynamic setting. Raise PreconditionFailed for other keys and for invalid values.

        A dynamic setting of Pulsar that has no effect here is stored unchecked, with a warning in the log.
        """
        if (reason := reason_without_effect(key)) is not None:
            _warn_without_effect(key, value, reason)
        else:
            self._check(key, "update")
            try:
                self._startup.changed({key: value})
            except ConfigError as problem:
                raise PreconditionFailed(str(problem)) from None
        await self._store_values(lambda values: {**values, key: value})

    async def delete(self, key: str) -> None:
        """Return to the value of the start. Raise PreconditionFailed for keys that are not dynamic."""
        if reason_without_effect(key) is None:
            self._check(key, "delete")
        await self._store_values(lambda values: {name: value for name, value in values.items() if name != key})

    async def _store_values(self, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        async def propose(records: Records) -> Decision[dict[str, str]]:
            stored = await records.get(keys.CONFIGURATION)
            old = dict(json.loads(stored.value)) if stored else {}
            changed = change(old)
            return Decision(changed, () if changed == old else (SetDynamicConfiguration(changed),))

        self._apply((await self._committer.decide(propose)).answer)

    def _apply(self, values: Mapping[str, str]) -> None:
        allowed = set(dynamic_keys())
        config = self._startup
        for key, value in values.items():
            if key in allowed:
                with suppress(ConfigError):
                    config = config.changed({key: value})
        config = _clamped(config, values)
        if config == self.config:  # as after a change by this broker, which its own watch reports
            return
        self.config = config
        for callback in self._watchers:
            callback(self.config)

    def _check(self, key: str, verb: str) -> None:
        allowed = dynamic_keys()
        if key in allowed:
            return
        if key in READ_AT_START:
            raise PreconditionFailed(
                f"Can't {verb} configuration {key} at run time: it is read when the broker starts. "
                "Set it in the file or the environment, and restart the broker"
            )
        exists = key in PULSAR_KEYS or key in settings_by_key()
        near = None if exists else nearest(key, allowed)
        hint = f"the nearest dynamic one is {near}" if near else f"dynamic are: {', '.join(allowed)}"
        raise PreconditionFailed(f"Can't {verb} {'non-dynamic' if exists else 'unknown'} configuration {key}; {hint}")


def _warn_without_effect(key: str, value: str, reason: str) -> None:
    logger.warning("dynamic setting without effect key=%s value=%s reason=%s", key, value, reason)


def _clamped(config: BrokerConfig, values: Mapping[str, str]) -> BrokerConfig:
    """Lower the default partition count to the maximum if a dynamic value sets either of them."""
    most = config.partitions_max
    if config.default_num_partitions <= most or not _CLAMPING & values.keys():
        return config
    return replace(config, default_num_partitions=most)
