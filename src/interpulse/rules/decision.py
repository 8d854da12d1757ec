"""The return value of every rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from interpulse.model.changes import Change

__all__ = ["AskRemotes", "Decision"]

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Decision(Generic[A]):
    """The answer for the caller, and what has to become true before it may be given.

    A rule never changes anything itself: its caller commits ``changes`` (all or none, and only if what the rule
    looked at is unchanged) and then hands out ``answer``. A preview is a decision whose changes are not applied. A
    refusal is an exception from ``model.errors`` and has no changes.
    """

    answer: A
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class AskRemotes:
    """In place of a decision: it depends on whether a remote cluster has the topic.

    The rule is asked again with a view that has the answer, and no ``remotes_to_ask``.
    """
