"""The how-to pages followed like README: each by one reader, in order, from the built wheel."""

import pytest

from tests.guides.conftest import WalkFactory
from tests.guides.pages import HOWTO, Block, blocks_of

pytestmark = pytest.mark.slow


def steps(page: str) -> list[Block]:
    """What the reader types and saves; `text` blocks show what he sees."""
    return [block for block in blocks_of(HOWTO / page) if block.language != "text"]


def shown(page: str, outputs: dict[str, str]) -> list[tuple[str, str]]:
    """What a page says its commands print, beside what the command before it printed."""
    pairs, printed = [], ""
    for block in blocks_of(HOWTO / page):
        if block.language == "text":
            pairs.append((block.text.strip(), printed.strip()))
        else:
            printed = outputs[block.place]
    return pairs


@pytest.mark.spark
def test_spark_page_when_followed_then_shows_what_it_says(reader: WalkFactory) -> None:
    outputs = reader("broker").follow(steps("use-spark.md"))
    for said, printed in shown("use-spark.md", outputs):
        assert said == printed
    assert outputs[steps("use-spark.md")[-1].place].count("content:too hot: 3") == 2


def test_container_page_when_followed_then_clients_are_told_the_advertised_address(reader: WalkFactory) -> None:
    here = {"broker.example.com": "localhost"}
    outputs = reader("broker", replaced=here).follow(steps("run-in-containers.md"))
    addresses = [printed for said, printed in shown("run-in-containers.md", outputs) if said.startswith("pulsar://")]
    assert len(addresses) == 1
    assert addresses[0].startswith("pulsar://localhost:")
