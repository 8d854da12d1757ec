"""How long the tests of faults play: short in the suites, long in `make soak`."""

from __future__ import annotations

import os
from typing import Final, TypeVar

import pytest

SOAKING: Final = os.environ.get("INTERPULSE_SOAK") == "1"

only_soaking: Final = pytest.mark.skipif(not SOAKING, reason="repeats for long: `make soak` runs it")

T = TypeVar("T")


def soak(long: T, *, otherwise: T) -> T:
    """The first in `make soak`."""
    return long if SOAKING else otherwise
