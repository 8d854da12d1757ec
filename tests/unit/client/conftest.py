"""What several test modules of the client need."""

from collections.abc import Iterator

import pytest

from tests.stub_web import StubWeb


@pytest.fixture
def web() -> Iterator[StubWeb]:
    """A web service whose answers the test chooses."""
    with StubWeb() as stub:
        yield stub
