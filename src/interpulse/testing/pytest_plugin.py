"""The pytest fixture ``pulsar_broker``: a broker for one test, with its data in the test's temporary directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from interpulse.testing.broker import InProcessBroker

__all__ = ["pulsar_broker"]


@pytest.fixture
def pulsar_broker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[InProcessBroker]:
    """A running broker; ``service_url`` and ``web_url`` say where.

    Keys of ``broker.conf`` come with a marker: ``@pytest.mark.pulsar_settings(brokerDeduplicationEnabled="true")``.
    """
    from interpulse.testing.broker import InProcessBroker

    marker = request.node.get_closest_marker("pulsar_settings")
    with InProcessBroker(tmp_path / "pulsar", marker.kwargs if marker else None) as broker:
        yield broker


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "pulsar_settings(**keys): keys of broker.conf for the fixture pulsar_broker")
