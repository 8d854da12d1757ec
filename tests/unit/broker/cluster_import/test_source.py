"""The data directory that an import reads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interpulse.broker.cluster_import import source


def test_metadata_when_copied_then_synced_and_left_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    names = ["metadata.sqlite", "metadata.sqlite-wal"]
    for name in names:
        (tmp_path / name).write_text(name)
    source._copy_metadata(tmp_path, scratch)
    assert synced == [*(str(tmp_path / name) for name in names), str(tmp_path)]
    assert (
        [(scratch / name).read_text() for name in names] == [(tmp_path / name).read_text() for name in names] == names
    )
