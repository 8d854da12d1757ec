"""What a release is made of: dependencies with a reason, a bill of materials, and files that are the same each time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from interpulse import __version__
from tests.guides.walk import build
from tests.house.sources import ROOT
from tools.sbom import bill

PAGE = ROOT / "docs" / "decisions" / "0023-dependencies.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EPOCH = "1700000000"


def named(requirement: str) -> str:
    """The package of a requirement."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None
    return found[0].lower()


def test_dependencies_when_they_are_declared_then_each_has_a_reason_and_no_other_one_has() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    lists = [PROJECT["project"]["dependencies"], *extras, *PROJECT["dependency-groups"].values()]
    declared = {named(each) for group in lists for each in group} - {"interpulse"}
    reasons = set(re.findall(r"^\| `([^`]+)` \| \S", PAGE.read_text(), re.MULTILINE))
    assert reasons == declared | set(map(named, PROJECT["build-system"]["requires"]))


def test_bill_when_it_is_made_then_names_every_package_that_the_extras_install() -> None:
    export = ("-q", "--frozen", "--no-dev", "--all-extras", "--format", "cyclonedx1.5")
    done = subprocess.run([sys.executable, "-m", "uv", "export", *export], cwd=ROOT, check=True, capture_output=True)
    made = bill(json.loads(done.stdout), int(EPOCH))
    assert made["metadata"]["component"]["version"] == __version__
    assert made["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    assert made["serialNumber"] == bill(json.loads(done.stdout), int(EPOCH))["serialNumber"]
    extras = PROJECT["project"]["optional-dependencies"].values()
    declared = {named(each) for group in [PROJECT["project"]["dependencies"], *extras] for each in group}
    assert declared - {"interpulse"} <= {each["name"] for each in made["components"]}
    assert all("version" in each and "purl" in each for each in made["components"])


@pytest.mark.slow
def test_build_when_it_is_repeated_elsewhere_then_gives_the_same_bytes(tmp_path: Path) -> None:
    sums = [build_in(tmp_path / folder) for folder in ("one", "a/much/deeper/other")]
    assert len(sums[0]) == 2
    assert sums[0] == sums[1]


def build_in(folder: Path) -> dict[str, str]:
    """The sums of wheel and sdist of a copy of the sources that lies there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    source, built = folder / "source", folder / "built"
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name)
    build(source, built, environment={**os.environ, "SOURCE_DATE_EPOCH": EPOCH})
    made = [path for path in built.iterdir() if path.suffix in (".whl", ".gz")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made}
