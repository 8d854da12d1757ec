"""Result of an inspection."""

from __future__ import annotations

from enum import IntEnum


class Finding(IntEnum):
    """Exit codes of commands that inspect without copying, from good to bad."""

    SAME = 0
    """Nothing to do."""
    DIFFERS = 1
    """Something is behind, held, or would be created on the target."""
    UNKNOWN = 2
    """A cluster does not answer."""
