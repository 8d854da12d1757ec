"""The bundles that operators name. Which one a topic belongs to is a question of `interpulse.rules.lookup`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from interpulse.model.errors import PreconditionFailed

__all__ = ["checked_bundle"]

_REASON_CHARS_MAX = 500


def checked_bundle(text: str, boundaries: Sequence[str]) -> str:
    """The bundle ``<lower>_<upper>`` as it is written everywhere else, letter case aside.

    Raises PreconditionFailed if the namespace has no such bundle.
    """
    bundles = [f"{lower}_{upper}" for lower, upper in pairwise(boundaries)]
    if text.lower() not in bundles:
        known = ", ".join(bundles)
        raise PreconditionFailed(f"Invalid bundle range {text[:100]!r}: there is {known[:_REASON_CHARS_MAX]}")
    return text.lower()
