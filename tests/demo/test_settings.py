"""What the demonstrations take from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataset import DatasetError
from settings import Settings


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("INPUT", "KEY", "MESSAGES", "ONCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RUN_DIR", str(tmp_path))


def test_settings_when_nothing_is_set_then_the_program_says_how_many(tmp_path: Path) -> None:
    assert Settings.from_environment(limit=20_000) == Settings(None, None, 20_000, once=False, run_dir=tmp_path)


def test_settings_when_the_environment_has_them_then_they_count(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"INPUT": "a.csv", "KEY": "k", "MESSAGES": "150", "ONCE": "1"}.items():
        monkeypatch.setenv(name, value)
    found = Settings.from_environment(limit=20_000, limit_min=100)
    assert (found.source, found.key_column, found.limit, found.once) == (Path("a.csv"), "k", 150, True)


@pytest.mark.parametrize("value", ["99", "many", "-1"])
def test_settings_when_the_number_is_too_small_or_none_then_refused(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MESSAGES", value)
    with pytest.raises(DatasetError, match=f"MESSAGES={value}: expected an integer of at least 100"):
        Settings.from_environment(limit_min=100)
