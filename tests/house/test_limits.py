"""The page of limits: its keys and defaults are those of the broker."""

from __future__ import annotations

import re

import pytest

from interpulse.broker.config.broker_config import settings_by_key
from interpulse.serving.settings import as_text
from tests.house.sources import ROOT

LINES = (ROOT / "docs/reference/limits.md").read_text().splitlines()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in LINES if line.startswith("| ")]
LIMITS = [row for row in ROWS if row[0] not in ("limit", "---")]


@pytest.mark.parametrize("row", LIMITS, ids=[row[0] for row in LIMITS])
def test_limit_when_it_has_a_key_then_its_default_is_that_of_the_broker(row: list[str]) -> None:
    fields = settings_by_key()
    keys = re.findall(r"`([^`]+)`", row[1])
    assert set(keys) <= set(fields)
    if keys:
        [default] = re.findall(r"`([^`]+)`", row[2])
        assert as_text(fields[keys[0]].default) == default
