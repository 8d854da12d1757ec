"""The tutorial's walks from the built wheel, in an empty environment: the text of the page is what runs."""

import pytest

from tests.guides.conftest import WalkFactory
from tests.guides.pages import TUTORIAL, Block, blocks_of
from tests.interop.real_pulsar import Address

pytestmark = pytest.mark.timeout(1200)

START = "Start a broker"
REAL = "The command line against a real Pulsar"
SPARK = "Spark"
TWO_CLUSTERS = "Two clusters and a Spark pipeline"
"""`make` in a checkout, which CI runs by itself."""

REPLACED = {"/tmp/try-interpulse": "elsewhere"}


def sections(*headings: str) -> list[Block]:
    return [block for block in blocks_of(TUTORIAL) if block.heading in headings]


def shown_under(heading: str, outputs: dict[str, str]) -> str:
    return "".join(outputs[block.place] for block in sections(heading))


def test_tutorial_when_it_has_a_block_then_a_walk_follows_it() -> None:
    assert {block.heading for block in blocks_of(TUTORIAL)} == {START, REAL, SPARK, TWO_CLUSTERS}


@pytest.mark.slow
@pytest.mark.spark
def test_spark_walk_when_followed_then_shows_the_messages(reader: WalkFactory) -> None:
    shown = shown_under(SPARK, reader(replaced=REPLACED).follow(sections(START, SPARK)))
    assert all(f"|{' ' * (5 - len(word))}{word}|" in shown for word in ("hello", "one", "two", "three"))


@pytest.mark.slow
@pytest.mark.interop
def test_command_line_walk_when_the_cluster_is_a_real_pulsar_then_works(
    reader: WalkFactory, real_pulsar: Address
) -> None:
    hosts = {
        **REPLACED,
        "pulsar://pulsar.example:6650": real_pulsar.service_url,
        "http://pulsar.example:8080": real_pulsar.web_url,
    }
    shown = shown_under(REAL, reader(replaced=hosts).follow(sections(START, REAL)))
    assert shown.count("content:hello") == 10
    assert '"msgInCounter" : 10' in shown or '"msgInCounter": 10' in shown
