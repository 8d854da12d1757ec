"""Defaults of a step: nothing to do, nothing to take back, nothing to wait for."""

from __future__ import annotations

from collections.abc import Sequence

from interpulse.failover.outcome import Outcome

SHOWN_MAX = 5
_LIMIT_S = 30


class PlainStep:
    """A step that only waits until it holds. Steps override what they do."""

    name = ""
    limit_s: float = _LIMIT_S
    overdue: Outcome | None = Outcome.TAKEN_BACK

    @property
    def shown(self) -> str:
        """Name for people."""
        return self.name

    async def act(self) -> None:
        """Do nothing."""

    async def revert(self) -> None:
        """Take nothing back."""

    def waits_for(self) -> Sequence[str]:
        """Return nothing."""
        return ()


def some(sentences: Sequence[str]) -> list[str]:
    """Return the first of many sentences, and the number of the others."""
    more = len(sentences) - SHOWN_MAX
    return [*sentences[:SHOWN_MAX], *([f"and {more} more"] if more > 0 else [])]
