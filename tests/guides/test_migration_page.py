"""The page for those who come from another connector: what it names is known, or refused with what replaces it."""

from __future__ import annotations

import re

import pytest

from interpulse.spark.options.option import replacement_of
from interpulse.spark.reading.read_options import ReadOptions
from interpulse.spark.writing.write_options import WriteOptions
from tests.guides.pages import HOWTO
from tools.generate_spark_reference import documented_options

PAGE = (HOWTO / "migrate.md").read_text()
ROW = re.compile(r"^\| `([^`]+)` \| (?:`([^`]+)`)? ?\| ?(.*)\|$", re.MULTILINE)
CONNECTORS = ("From the Scala connector", "From Kafka's source")


def rows(heading: str) -> list[tuple[str, str, str]]:
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return ROW.findall(section)


def known() -> set[str]:
    options = documented_options(read=ReadOptions, write=WriteOptions)
    return {name for option, aliases, *_ in options for name in (option, *re.findall(r"`([^`]+)`", aliases))}


@pytest.mark.parametrize("heading", CONNECTORS)
def test_options_when_named_then_are_known_or_refused_with_what_replaces_them(heading: str) -> None:
    there_and_here = rows(heading)
    assert len(there_and_here) > 20
    for there, here, told in there_and_here:
        assert there in known() or replacement_of(there) is not None, there
        assert here in known() if here else told, there
        if there not in known() and here:
            assert here in str(replacement_of(there)), there
