"""The extras of the package, as sentences about something missing name them."""

from __future__ import annotations

__all__ = ["pip_install"]


def pip_install(extra: str) -> str:
    """The command that brings an extra: from where packages come from, or from a checkout."""
    return f"pip install 'interpulse[{extra}]', or '.[{extra}]' in a checkout"
