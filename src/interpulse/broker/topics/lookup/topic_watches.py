"""Watchers of the topics of a namespace that match a pattern.

The names of a namespace are cached while a client watches it, once for all its watchers. The metadata store reports the
records that change; only those are read again.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.model.errors import InvalidTopicName, MetadataError
from interpulse.model.names import PERSISTENT, NamespaceName, TopicName
from interpulse.storage.api import MetadataStore
from interpulse.storage.metadata.session_bounded import with_waiting_reads

_MEMORY_BYTES_MAX: Final = 8 * 1024 * 1024

log = logging.getLogger(__name__)
Spawn = Callable[[Coroutine[Any, Any, None]], None]
_RETRY_SECONDS = 1.0
_NAMES_AT_ONCE = 1000  # more would hold the event loop for too long


def without_domain(pattern: str) -> str:
    """Return the pattern without its domain, which plays no part: ``persistent://a/b/.*`` means ``a/b/.*``."""
    _, separator, rest = pattern.partition("://")
    return rest if separator else pattern


class TopicPattern:
    """Matches whole names ``tenant/namespace/topic``, where partitions have the name of their topic.

    The syntax is that of RE2. A client writes the pattern and we match it against every topic of a namespace, so
    matching takes time linear in the name whatever the pattern is. Look-around and back references, which would break
    that, are not understood: such a pattern is left to the client to evaluate.
    """

    def __init__(self, text: str) -> None:
        """Compile a pattern. Raise InvalidTopicName, as Pulsar does, if RE2 does not accept it."""
        import re2  # loaded with the first pattern: most brokers are never asked for one

        options = re2.Options()
        options.log_errors = False  # the error has the message; the library would write to stderr
        options.max_mem = _MEMORY_BYTES_MAX
        try:
            self._matched = re2.compile(without_domain(text), options).fullmatch
        except re2.error as error:
            raise InvalidTopicName(f"Invalid topics pattern: {text}: {_reason(error)}") from None
        except UnicodeEncodeError:
            raise InvalidTopicName(f"Invalid topics pattern: {text!a}: half a character") from None

    def matches(self, topic: TopicName) -> bool:
        return self._matched(f"{topic.tenant}/{topic.namespace}/{topic.base.local_name}") is not None


def _reason(error: Exception) -> str:
    (reason,) = error.args
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


class TopicWatch:
    """One watcher: the persistent topics and partitions that match, system topics left out. Made by `TopicWatches`."""

    def __init__(self, pattern: TopicPattern, on_change: Callable[[], None]) -> None:
        self.names: list[str] = []
        """Matching names in order, which makes their hash cheap; it is sent with every change."""
        self._pattern = pattern
        self._on_change = on_change
        self._new: set[str] = set()
        self._gone: set[str] = set()

    @property
    def has_changes(self) -> bool:
        return bool(self._new or self._gone)

    def take_changes(self) -> tuple[list[str], list[str]]:
        """Return names added and names removed since the last call, sorted; without those that were both."""
        changes = sorted(self._new), sorted(self._gone)
        self._new.clear()
        self._gone.clear()
        return changes

    def update(self, new: Collection[TopicName], gone: Collection[TopicName]) -> None:
        """Apply a change of the namespace."""
        for name in map(str, gone):
            if _has(self.names, name):
                del self.names[bisect_left(self.names, name)]
                _note(name, there=self._gone, unless=self._new)
        for name in self._unknown(new):
            insort(self.names, name)
            _note(name, there=self._new, unless=self._gone)
        if self.has_changes:
            self._on_change()

    async def begin(self, topics: set[TopicName]) -> None:
        """Find the matching topics. :meth:`update` may be called meanwhile."""
        remaining: Iterator[TopicName] = iter(list(topics))
        while some := list(itertools.islice(remaining, _NAMES_AT_ONCE)):
            self.names += self._unknown(topic for topic in some if topic in topics)
            self.names.sort()
            await asyncio.sleep(0)

    def _unknown(self, topics: Iterable[TopicName]) -> list[str]:
        matching = {str(topic) for topic in topics if self._pattern.matches(topic)}
        return [name for name in matching if not _has(self.names, name)]


def _has(names: Sequence[str], name: str) -> bool:
    index = bisect_left(names, name)
    return index < len(names) and names[index] == name


def _note(name: str, *, there: set[str], unless: set[str]) -> None:
    if name in unless:
        unless.remove(name)
    else:
        there.add(name)


class TopicWatches:
    """The watchers of all namespaces. ``spawn`` runs work in the background and owns it."""

    def __init__(self, store: MetadataStore, lifecycle: TopicLifecycle, spawn: Spawn) -> None:
        self._store = store
        self._lifecycle = lifecycle
        self._spawn = spawn
        self._namespaces: dict[NamespaceName, _WatchedNamespace] = {}

    async def watch(self, namespace: NamespaceName, pattern: TopicPattern, on_change: Callable[[], None]) -> TopicWatch:
        """Begin a watch, also of a namespace that does not exist; end it with :meth:`end`.

        ``on_change`` is called whenever there are changes to take, also before this returns.
        """
        watched = self._namespaces.get(namespace)
        if watched is None:
            watched = _WatchedNamespace(self._store, self._lifecycle, namespace, self._spawn)
            self._namespaces[namespace] = watched
        watch = TopicWatch(pattern, on_change)
        watched.watchers[watch] = None
        try:
            await watched.list()
            await watch.begin(watched.topics)
        except BaseException:
            self.end(namespace, watch)
            raise
        return watch

    def end(self, namespace: NamespaceName, watch: TopicWatch) -> None:
        """Remove a watcher, and the namespace with its last one."""
        watched = self._namespaces[namespace]
        watched.watchers.pop(watch, None)
        if not watched.watchers:
            del self._namespaces[namespace]
            watched.close()


class _WatchedNamespace:
    """The names of one namespace, up to date as long as it has watchers."""

    def __init__(self, store: MetadataStore, lifecycle: TopicLifecycle, namespace: NamespaceName, spawn: Spawn) -> None:
        self.watchers: dict[TopicWatch, None] = {}
        self.topics: set[TopicName] = set()
        self._store = store
        self._lifecycle = lifecycle
        self._namespace = namespace
        self._spawn = spawn
        self._listed = False
        self._reading = asyncio.Lock()
        self._changed_keys: set[str] = set()
        self._unsure = False  # anything may have changed
        self._looking = False
        self._prefix = f"{keys.topic_records(namespace, PERSISTENT)}/"
        self.close = store.watch(self._prefix, self._on_key)

    async def list(self) -> None:
        """Return once the names are loaded. Raise the error that prevents it."""
        async with self._reading:
            if not self._listed:
                names = await self._lifecycle.list_topics(self._namespace, PERSISTENT, include_system=False)
                self.topics.update(names)
                self._listed = True

    def _on_key(self, key: str) -> None:
        if key == self._prefix:
            self._unsure = True
        elif keys.is_topic_record(key):
            self._changed_keys.add(key)
        else:
            return
        if not self._looking:
            self._looking = True
            self._spawn(self._look_again())

    async def _look_again(self) -> None:
        """Read the changed records, in batches, until none has changed meanwhile."""
        try:
            while (self._unsure or self._changed_keys) and self.watchers:
                try:
                    await with_waiting_reads(self._look())
                except MetadataError as error:
                    log.warning("topics cannot be read, will retry namespace=%s error=%s", self._namespace, error)
                    self._unsure = True
                    await asyncio.sleep(_RETRY_SECONDS)
        finally:
            self._looking = False

    async def _look(self) -> None:
        async with self._reading:
            if self._unsure:
                self._unsure = False
                names = await self._lifecycle.list_topics(self._namespace, PERSISTENT, include_system=False)
                self._changed_keys |= {keys.topic_record(topic) for topic in (*names, *self.topics)}
            changed, self._changed_keys = self._changed_keys, set()
            self._apply(changed, await self._store.get_many(sorted(changed)))

    def _apply(self, changed: Collection[str], present: Collection[str]) -> None:
        """Apply changed records. Many do not change the list: adding a ledger writes a record too."""
        topics = {key: topic for key in changed if (topic := keys.topic_of_record(key)) and not topic.is_system}
        new = {topic for key, topic in topics.items() if key in present} - self.topics
        gone = {topic for key, topic in topics.items() if key not in present} & self.topics
        self.topics |= new
        self.topics -= gone
        for watcher in list(self.watchers):
            watcher.update(new, gone)
