"""The page of what is proven shows the properties, scenarios, planted bugs and figures of the simulated world."""

from tests.simulation.properties import PROPERTIES
from tools.generate_what_is_proven import PAGE, judged, page


def test_page_when_compared_with_its_sources_then_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run .venv/bin/python -m tools.generate_what_is_proven"


def test_findings_when_they_name_a_property_then_it_has_its_promise() -> None:
    assert judged() <= PROPERTIES.keys()
