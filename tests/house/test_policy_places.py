"""The section on new policies in CONTRIBUTING.md names the files that its example stands in, no more and no less."""

import re

from tests.house.sources import ROOT

SOURCES = ROOT / "src" / "interpulse"
EXAMPLE = re.compile(r"\bmax_subscriptions(_per_topic)?\b")


def test_section_on_new_policies_names_the_files_of_its_example() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text().split("## A new policy")[1].split("\n## ")[0]
    table = "\n".join(line.split("|")[1] for line in section.splitlines() if line.startswith("| `"))
    named = set(re.findall(r"`([^`]+\.py)`", table))
    found = {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py") if EXAMPLE.search(path.read_text())}
    assert named == found
