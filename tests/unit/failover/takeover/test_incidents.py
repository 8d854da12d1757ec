"""Incidents below the directory of a pair."""

from __future__ import annotations

from pathlib import Path

from interpulse.failover.takeover.incidents import Incidents


def test_incidents_when_none_is_stored_then_none_is_open(tmp_path: Path) -> None:
    incidents = Incidents(tmp_path / "absent")
    assert (incidents.open_epochs(), incidents.before(2)) == ([], None)
    incidents.close(2, {})
    assert not incidents.directory(2).exists()


def test_incidents_when_one_is_closed_then_the_others_are_open(tmp_path: Path) -> None:
    incidents = Incidents(tmp_path)
    for epoch in (10, 2, 5):
        incidents.write_before(epoch, {"epoch": epoch})
    incidents.write_before(5, {"epoch": 5, "topics": []})
    (tmp_path / "incidents" / "notes").mkdir()
    incidents.close(2, {"outcome": "TAKEN_BACK"})
    assert (incidents.open_epochs(), incidents.before(5)) == ([5, 10], {"epoch": 5, "topics": []})
