"""The reference of pairs names every key of their file, and every outcome."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from interpulse.failover.outcome import Outcome
from interpulse.failover.pair_config import ClientMoves, PairLimits, PairTable, SiteAddress
from tests.house.sources import ROOT

PAGE = (ROOT / "docs/reference/failover.md").read_text()


@pytest.mark.parametrize("table", [PairTable, SiteAddress, PairLimits, ClientMoves])
def test_keys_when_read_from_the_file_then_are_in_the_reference(table: type) -> None:
    rows = re.findall(r"^\| (`.*?`.*?) \|", PAGE, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert {field.name for field in fields(table)} <= named


def test_limits_when_they_have_defaults_then_the_reference_has_the_same() -> None:
    shown = {name: int(value) for name, value in re.findall(r"^\| `(\w+)` \((\d+)\) \|", PAGE, re.MULTILINE)}
    assert shown == {field.name: field.default for field in fields(PairLimits)}


def test_outcomes_when_they_end_a_command_then_are_in_the_reference() -> None:
    section = PAGE.partition("## Exit codes")[2].partition("\n## ")[0]
    assert [int(code) for code in re.findall(r"^\| (\d) \|", section, re.MULTILINE)] == sorted(Outcome)
