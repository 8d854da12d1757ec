"""Calls made up from the description of the admin API: each is answered in its form, and none is a fault of the broker.

An operation of Pulsar that is not offered answers 501, which is what it says of itself: it is left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from interpulse.testing import InProcessBroker
from tests.support.raw_client import RawClient

OPERATIONS_MIN = 400
EXAMPLES = 1
SEED = 18
CHECKS = "not_a_server_error,content_type_conformance,response_headers_conformance"
NOT_OFFERED = "not offered"


@pytest.mark.slow
def test_calls_when_they_are_made_up_then_none_is_a_fault_of_the_broker(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path / "data") as broker:
        description = described(f"{broker.web_url}/openapi.json")
        file = tmp_path / "openapi.json"
        file.write_text(json.dumps(description))
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", str(file), "--url", broker.web_url),
                *("--checks", CHECKS, "--phases", "fuzzing", "--max-examples", str(EXAMPLES), "--seed", str(SEED)),
                *("--generation-database", "none", "--generation-unique-inputs", "--no-color", "--warnings", "off"),
                *("--suppress-health-check", "all", "--continue-on-failure", "--request-timeout", "30"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
        assert f"Tested: {sum(map(len, description['paths'].values()))}" in done.stdout
        with RawClient(broker.service_url):
            pass


def described(url: str) -> dict:
    """The description without what is not offered."""
    with urllib.request.urlopen(url) as answer:
        description = json.loads(answer.read())
    for path, operations in list(description["paths"].items()):
        offered = {method: each for method, each in operations.items() if NOT_OFFERED not in each["tags"]}
        description["paths"][path] = offered
        if not offered:
            del description["paths"][path]
    assert sum(map(len, description["paths"].values())) >= OPERATIONS_MIN
    return description
