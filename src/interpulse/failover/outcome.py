"""Outcomes of an operation, which are the exit codes of its command, and the failure that carries one."""

from __future__ import annotations

from enum import IntEnum


class Outcome(IntEnum):
    """Outcome of an operation."""

    DONE = 0
    NOTICED = 1
    """Done, with warnings to look at."""
    UNREACHABLE = 2
    REFUSED = 3
    BROKEN_OFF = 4
    """Not finished: the same command goes on."""
    TAKEN_BACK = 5
    """Taken back: everything is as before."""
    LEASED = 7
    """Another operation holds the lease."""


class OperationFailed(Exception):
    """End of an operation, with its outcome. The message has the reason and the remedy."""

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.outcome = outcome
