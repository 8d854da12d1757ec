"""Answers of rules about topics, kept in memory for the next question.

A rule is pure: it gives the same answer for the same view. So a kept answer is right as long as the same view would be
read again, and that is found out anew with every question, by comparing all that a view rests on:

* the policies of the namespace (its standing, its creation policy, its clusters), the partition metadata under the base
  name, and the record of the topic, by the versions that the metadata store has of them now;
* the settings of the broker;
* for a non-persistent topic, which has no record: whether it is loaded.

A change of these needs no notice, and any broker may make it. Answers that rest on
more are not kept: refusals, what remote clusters said, and answers that come with changes, the only ones for which it
matters how many topics a namespace may still get. Permissions are the front ends' to check, before they ask here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from interpulse.broker.topics.topic_reading import LifecycleSettings, Reading
from interpulse.model.names import TopicName
from interpulse.rules.decision import Decision
from interpulse.storage.api import MetadataStore

__all__ = ["AnswerBasis", "KnownAnswers"]

A = TypeVar("A")
_NAMES_MAX: Final = 20_000
"""Some 500 bytes each."""


class AnswerBasis(NamedTuple):
    """Where everything stands that an answer rests on; see the module."""

    store: MetadataStore
    settings: Callable[[], LifecycleSettings]
    loaded: Collection[TopicName]


class _Kept(NamedTuple, Generic[A]):
    decision: Decision[A]
    name: TopicName
    versions: Mapping[str, int | None]
    settings: LifecycleSettings
    loaded: bool | None  # None: it does not matter


class KnownAnswers(Generic[A]):
    """The answers to one question, by complete names of topics. With too many names all are forgotten."""

    def __init__(self, basis: AnswerBasis, *, names_max: int = _NAMES_MAX) -> None:
        self._basis = basis
        self._names_max = names_max
        self._kept: dict[str, _Kept[A]] = {}

    def keep(self, reading: Reading, decision: Decision[A]) -> None:
        """``decision`` is what the rule made of the view of this reading and of nothing else."""
        if decision.changes:
            return
        if len(self._kept) >= self._names_max:
            self._kept.clear()
        name, view = reading.view.name, reading.view
        loaded = None if name.is_persistent else view.recorded
        self._kept[str(name)] = _Kept(decision, name, reading.versions, reading.settings, loaded)

    def find(self, name: str) -> Decision[A] | None:
        """The decision, if it is known that it would be the same again; it has no changes."""
        kept = self._kept.get(name)
        if kept is None:
            return None
        decision, topic, versions, settings, loaded = kept
        store, current_settings, loaded_topics = self._basis
        holds = (
            store.unchanged(versions)
            and current_settings() is settings
            and (loaded is None or (topic in loaded_topics) is loaded)
        )
        return decision if holds else None
