"""What a look at the replication of a pipeline ends with."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Finding"]


class Finding(IntEnum):
    """The exit codes of all that looks and does not copy, from good to bad."""

    SAME = 0
    """There is nothing to do."""
    DIFFERS = 1
    """Something is behind, would be made on the target, or is held."""
    UNKNOWN = 2
    """A cluster gives no answer."""
