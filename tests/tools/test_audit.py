"""What is said of a report of pip-audit, and whether the step fails."""

import json

import pytest

from tools.audit import verdict

CLEAN = {"name": "yarl", "version": "1.2", "vulns": []}
BAD = {"name": "aiohttp", "version": "3.0", "vulns": [{"id": "CVE-1", "fix_versions": ["3.1"]}]}
UNMENDED = {"name": "aiohttp", "version": "3.0", "vulns": [{"id": "CVE-2", "fix_versions": []}]}
UNKNOWN = {"name": "click", "skip_reason": "Dependency not found on PyPI"}


@pytest.mark.parametrize(
    ("packages", "lines", "code"),
    [
        pytest.param([CLEAN], ["1 packages looked at, 0 vulnerabilities"], 0, id="nothing"),
        pytest.param(
            [CLEAN, BAD],
            ["aiohttp 3.0: CVE-1, mended in 3.1", "2 packages looked at, 1 vulnerabilities"],
            1,
            id="a vulnerability",
        ),
        pytest.param(
            [UNMENDED],
            ["aiohttp 3.0: CVE-2, mended in no version yet", "1 packages looked at, 1 vulnerabilities"],
            1,
            id="one without a remedy",
        ),
        pytest.param(
            [CLEAN, UNKNOWN],
            [
                "1 packages looked at, 0 vulnerabilities; not looked at, because the service does not know them: click",
            ],
            0,
            id="one that is unknown",
        ),
        pytest.param([UNKNOWN], ["not run: the vulnerability service knows none of 1 packages"], 0, id="all unknown"),
    ],
)
def test_report_when_it_is_there_then_only_findings_fail(packages: list[dict], lines: list[str], code: int) -> None:
    assert verdict(json.dumps({"dependencies": packages, "fixes": []}), "") == (lines, code)


@pytest.mark.parametrize(
    ("errors", "line"),
    [
        ("Traceback\nConnectionError: no route", "not run: pip-audit gave no report: ConnectionError: no route"),
        ("", "not run: pip-audit gave no report: it said nothing"),
    ],
)
def test_report_when_there_is_none_then_it_is_said_and_nothing_fails(errors: str, line: str) -> None:
    assert verdict("", errors) == ([line], 0)
