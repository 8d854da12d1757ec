"""The help of ``topics``."""

import pytest

from interpulse.cli.admin.topics.topics import topics
from tests.unit.cli.conftest import RunAdmin


def test_commands_when_they_are_no_policies_then_stand_in_one_section_each(
    run_admin: RunAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    help_lines = run_admin("topics", "--help").stdout.splitlines()
    placed = [name for names in topics.sections.values() for name in names]
    assert len(placed) == len(set(placed))
    assert set(placed) <= set(topics.commands)
    assert "Commands:" not in help_lines
    headings = [line.removesuffix(":") for line in help_lines if line and not line.startswith(" ")]
    assert headings[2:] == [*topics.sections, "Policies (put one of the words in front)"]
    assert max(map(len, help_lines)) <= 80
