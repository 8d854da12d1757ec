"""The pytest fixtures: brokers for a test, a session, or a call.

pytest loads this module in every run of an environment that has the package. It imports nothing of the broker until a
fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from interpulse.testing import BrokerFactory, ClusterPair, InProcessBroker, Setting

_MARKER = "pulsar_settings"
_TAKE_SETTINGS = {"pulsar_broker", "pulsar_cluster_pair"}
_TAKE_NONE = {"pulsar_broker_session", "pulsar_broker_factory"}


@pytest.fixture
def pulsar_broker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[InProcessBroker]:
    """Provide a running broker for one test, with data in its temporary directory, at ``service_url`` and ``web_url``.

    Set keys of ``broker.conf`` with a marker: ``@pytest.mark.pulsar_settings(allowAutoTopicCreation=False)``.
    """
    with _failing_in_one_sentence():
        from interpulse.testing import InProcessBroker

        broker = InProcessBroker(tmp_path / "pulsar", _marked_settings(request.node))
    with broker:
        yield broker


@pytest.fixture
def pulsar_broker_factory(tmp_path: Path) -> Iterator[BrokerFactory]:
    """Provide a factory of brokers: ``east = pulsar_broker_factory(clusterName="east")``.

    All brokers are stopped at the end of the test.
    """
    with _failing_in_one_sentence():
        from interpulse.testing import BrokerFactory
    factory = BrokerFactory(tmp_path)
    yield factory
    factory.close()


@pytest.fixture
def pulsar_cluster_pair(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ClusterPair]:
    """Provide two clusters, ``east`` and ``west``, registered at each other.

    The Spark job that copies messages is not started.

    The marker ``pulsar_settings`` sets keys of ``broker.conf`` for both.
    """
    with _failing_in_one_sentence():
        from interpulse.testing import ClusterPair

        pair = ClusterPair(tmp_path / "pulsar", _marked_settings(request.node))
    with pair:
        yield pair


@pytest.fixture(scope="session")
def pulsar_broker_session_settings() -> Mapping[str, Setting]:
    """Provide keys of ``broker.conf`` for ``pulsar_broker_session``. Override this fixture in ``conftest.py``."""
    return {}


@pytest.fixture(scope="session")
def pulsar_broker_session(
    tmp_path_factory: pytest.TempPathFactory, pulsar_broker_session_settings: Mapping[str, Setting]
) -> Iterator[InProcessBroker]:
    """Provide a running broker for the whole session, or for one worker of pytest-xdist.

    Tests share it: use separate topics in each test.
    """
    with _failing_in_one_sentence():
        from interpulse.testing import InProcessBroker

        broker = InProcessBroker(tmp_path_factory.mktemp("pulsar"), pulsar_broker_session_settings)
    with broker:
        yield broker


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers", f"{_MARKER}(**keys): keys of broker.conf for pulsar_broker and pulsar_cluster_pair"
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse settings that would have no effect."""
    if item.get_closest_marker(_MARKER) is None:
        return
    fixtures = set(getattr(item, "fixturenames", ()))
    if fixtures & _TAKE_NONE and not fixtures & _TAKE_SETTINGS:
        used = " and ".join(sorted(fixtures & _TAKE_NONE))
        pytest.fail(
            f"the marker {_MARKER} has no effect on {used}: give settings to the call of pulsar_broker_factory,"
            " or write the fixture pulsar_broker_session_settings",
            pytrace=False,
        )


def _marked_settings(item: pytest.Item) -> dict[str, Setting]:
    """Return the keys of all markers of a test. A marker of the test itself overrides those of its class and module."""
    markers = list(item.iter_markers(_MARKER))
    for marker in markers:
        if marker.args:
            pytest.fail(f"{_MARKER} takes keys=values, not {marker.args[0]!r}", pytrace=False)
    return {key: value for marker in reversed(markers) for key, value in marker.kwargs.items()}


@contextmanager
def _failing_in_one_sentence() -> Iterator[None]:
    """Fail the test with the message of a user error, without a traceback."""
    from interpulse.serving.settings import ConfigError

    try:
        yield
    except (ImportError, ConfigError) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
