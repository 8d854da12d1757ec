"""The reference of findings has a row for each kind, with its severity and meaning."""

from __future__ import annotations

import re

from interpulse.failover.preflight.findings import MEANINGS
from tests.house.sources import ROOT

PAGE = (ROOT / "docs/reference/failover-findings.md").read_text()


def test_kinds_when_compared_with_the_reference_then_have_the_same_rows() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| .+ \|$", PAGE, re.MULTILINE)
    assert {kind: (severity, meaning) for kind, severity, meaning in rows} == {
        str(kind): shown for kind, shown in MEANINGS.items()
    }
