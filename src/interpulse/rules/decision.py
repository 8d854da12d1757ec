"""Result of every rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from interpulse.model.changes import Change

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Decision(Generic[A]):
    """Answer for the caller, and the changes to commit before it is returned.

    A rule never changes anything itself. Its caller commits ``changes``, all or none and only if the state that the
    rule read is unchanged, and then returns ``answer``. A preview is a decision whose changes are not applied. A
    refusal is an exception from ``model.errors`` and has no changes.
    """

    answer: A
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class AskRemotes:
    """Request for more information: the decision depends on whether a remote cluster has the topic.

    Call the rule again with a view that has the answer and an empty ``remotes_to_ask``.
    """
