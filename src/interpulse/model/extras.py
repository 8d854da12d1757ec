"""Installation commands for the extras of the package, for texts about a missing one."""

from __future__ import annotations


def pip_install(extra: str) -> str:
    """Return the command that installs an extra, from the index or in a checkout."""
    return f"pip install 'interpulse[{extra}]', or '.[{extra}]' in a checkout"
