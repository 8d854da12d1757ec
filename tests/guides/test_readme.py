"""README's walks from the built wheel, in an empty environment: its own text is what is run."""

import pytest

from tests.guides.conftest import WalkFactory
from tests.guides.pages import README, Block, blocks_of
from tests.interop.real_pulsar import Address

pytestmark = pytest.mark.timeout(1200)

TRY_IT = "Try it"
LOCAL = (TRY_IT, "A broker in a test", "The client")
REAL = "The command line against a real Pulsar"
SPARK = "Spark"
TWO_CLUSTERS = "Two clusters and a Spark pipeline"  # `make`, in a checkout: followed by the user of this suite

ELSEWHERE = {"/tmp/try-interpulse": "elsewhere"}


def sections(*headings: str) -> list[Block]:
    return [block for block in blocks_of(README) if block.heading in headings]


def said(outputs: dict[str, str], heading: str) -> str:
    return "".join(outputs[block.place] for block in sections(heading))


def test_readme_when_it_has_a_block_then_a_walk_follows_it() -> None:
    assert {block.heading for block in blocks_of(README)} == {*LOCAL, REAL, SPARK, TWO_CLUSTERS}


@pytest.mark.slow
def test_walk_when_followed_in_order_then_every_step_works(reader: WalkFactory) -> None:
    outputs = reader(replaced=ELSEWHERE).follow(sections(*LOCAL))
    assert said(outputs, TRY_IT).count("content:hello") == 10
    assert "1 passed" in said(outputs, "A broker in a test")
    assert "b'one'" in said(outputs, "The client")


@pytest.mark.slow
@pytest.mark.spark
def test_spark_walk_when_followed_then_shows_the_messages(reader: WalkFactory) -> None:
    shown = said(reader(replaced=ELSEWHERE).follow(sections(TRY_IT, SPARK)), SPARK)
    assert all(f"|{' ' * (5 - len(word))}{word}|" in shown for word in ("hello", "one", "two", "three"))


@pytest.mark.slow
@pytest.mark.interop
def test_command_line_walk_when_the_cluster_is_a_real_pulsar_then_works(
    reader: WalkFactory, real_pulsar: Address
) -> None:
    hosts = {
        **ELSEWHERE,
        "pulsar://pulsar.example:6650": real_pulsar.service_url,
        "http://pulsar.example:8080": real_pulsar.web_url,
    }
    outputs = reader(replaced=hosts).follow(sections(TRY_IT, REAL))
    assert said(outputs, REAL).count("content:hello") == 10
    assert '"msgInCounter" : 10' in said(outputs, REAL) or '"msgInCounter": 10' in said(outputs, REAL)
