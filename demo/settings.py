"""Settings of a demonstration from the environment."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dataset import DatasetError


@dataclass(frozen=True, slots=True)
class Settings:
    """``INPUT``, ``KEY``, ``MESSAGES``, ``ONCE`` and ``RUN_DIR`` of the environment."""

    source: Path | None
    key_column: str | None
    limit: int | None
    once: bool
    run_dir: Path

    @classmethod
    def from_environment(cls, *, limit: int | None = None, limit_min: int = 1) -> Settings:
        """Read the environment. ``limit`` is the default of ``MESSAGES``. Raises DatasetError."""
        source, messages = os.environ.get("INPUT"), os.environ.get("MESSAGES")
        if messages and (not messages.isdigit() or int(messages) < limit_min):
            raise DatasetError(f"MESSAGES={messages}: expected an integer of at least {limit_min}")
        run_dir = os.environ.get("RUN_DIR") or tempfile.mkdtemp(prefix="interpulse-")
        return cls(
            source=Path(source) if source else None,
            key_column=os.environ.get("KEY") or None,
            limit=int(messages) if messages else limit,
            once=os.environ.get("ONCE", "") not in ("", "0"),
            run_dir=Path(run_dir),
        )
