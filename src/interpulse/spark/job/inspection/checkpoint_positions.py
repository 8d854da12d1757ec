"""Positions of a stream in its checkpoint, read without Spark.

Spark writes one text file per micro-batch: its end in ``offsets``, and once it is done a mark in ``commits``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from interpulse.model.ids import Position
from interpulse.spark.offsets import StreamOffset


def committed_positions(checkpoint: Path) -> Mapping[str, Position]:
    """Return the end of the newest completed micro-batch by topic-partition; empty if there is none.

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
