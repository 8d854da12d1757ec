"""Where a stream stands according to its checkpoint, read without Spark.

Spark keeps one text file per micro-batch: its end in ``offsets``, and once it is done a mark in ``commits``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from interpulse.model.ids import Position
from interpulse.spark.offsets import StreamOffset

__all__ = ["committed_positions"]


def committed_positions(checkpoint: Path) -> Mapping[str, Position]:
    """The end of the newest micro-batch that is done, by topic-partition; nothing if there is none.

    Raises ValueError for a checkpoint of another kind.
    """
    done = [int(path.name) for path in (checkpoint / "commits").glob("[0-9]*") if path.name.isdigit()]
    if not done:
        return {}
    path = checkpoint / "offsets" / str(max(done))
    try:
        _, _, offset = path.read_text(encoding="utf-8").split("\n", 2)
        return StreamOffset.from_json(json.loads(offset)).positions
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ValueError(f"{path} is not an offset of a stream of ours: {problem}") from problem
