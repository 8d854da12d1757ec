"""A cache of the answers of rules about topics.

A rule is pure: it gives the same answer for the same view. So a cached answer holds while the view is unchanged. Each
lookup verifies that by comparing everything the view rests on:

* the policies of the namespace (its standing, its creation policy, its clusters), the partition metadata under the base
  name, and the record of the topic, by their current versions in the metadata store;
* the settings of the broker;
* for a non-persistent topic, which has no record: whether it is loaded.

Any broker may change these without notice. Some answers rest on more and are not cached: refusals, answers of remote
clusters, and answers with changes, the only ones that depend on the topic limit of a namespace. The front ends check
permissions before they ask here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from interpulse.broker.topics.topic_reading import LifecycleSettings, Reading
from interpulse.model.changes import Decision
from interpulse.model.names import TopicName
from interpulse.storage.api import MetadataStore

A = TypeVar("A")
_NAMES_MAX: Final = 20_000
"""Some 500 bytes each."""


class AnswerBasis(NamedTuple):
    """The versions and settings that an answer rests on; see the module."""

    store: MetadataStore
    settings: Callable[[], LifecycleSettings]
    loaded: Collection[TopicName]


class _CachedAnswer(NamedTuple, Generic[A]):
    decision: Decision[A]
    name: TopicName
    versions: Mapping[str, int | None]
    settings: LifecycleSettings
    loaded: bool | None  # None: it does not matter


class AnswerCache(Generic[A]):
    """The answers to one question, by complete names of topics. With too many names all are dropped."""

    def __init__(self, basis: AnswerBasis, *, names_max: int = _NAMES_MAX) -> None:
        self._basis = basis
        self._names_max = names_max
        self._answers: dict[str, _CachedAnswer[A]] = {}

    def add(self, reading: Reading, decision: Decision[A]) -> None:
        """Cache a decision that the rule made from this view and nothing else."""
        if decision.changes:
            return
        if len(self._answers) >= self._names_max:
            self._answers.clear()
        name, view = reading.view.name, reading.view
        loaded = None if name.is_persistent else view.recorded
        self._answers[str(name)] = _CachedAnswer(decision, name, reading.versions, reading.settings, loaded)

    def find(self, name: str) -> Decision[A] | None:
        """Return the cached decision if the rule would still make it; it has no changes."""
        cached = self._answers.get(name)
        if cached is None:
            return None
        decision, topic, versions, settings, loaded = cached
        store, current_settings, loaded_topics = self._basis
        holds = (
            store.unchanged(versions)
            and current_settings() is settings
            and (loaded is None or (topic in loaded_topics) is loaded)
        )
        return decision if holds else None
