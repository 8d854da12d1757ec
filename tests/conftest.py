"""What holds for all tests, and the fixtures of those in several folders."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

from interpulse.testing import InProcessBroker
from tests.front_ends import access
from tests.front_ends.brokers import NO_JOB

# A machine that is busy with other things takes its time over an example, and that is no failure.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples every time, and no smaller one is looked for: a mutant fails or survives.
settings.register_profile(
    "mutants", settings.get_profile("any machine"), derandomize=True, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("any machine")

LONGEST_FIRST = (
    "tests/spark/",
    "tests/guides/",
    "tests/durability/",
    "tests/simulation/",
    "tests/interop/",
    "tests/integration/",
)


# The collection makes some million objects, which last: a search for garbage among them finds nothing, there and later.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the folders first whose files take longest: no worker is left over with one of them at the end."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    """Its folder's place; the order within a folder stays as it is, shuffled or not."""
    return next(
        (place for place, folder in enumerate(LONGEST_FIRST) if item.nodeid.startswith(folder)), len(LONGEST_FIRST)
    )


@pytest.fixture(scope="session", autouse=True)
def no_contexts_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Commands of the tests, in this process and others, find no context but their own."""
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))


@pytest.fixture(autouse=True)
def log_of_the_test() -> None:
    """What a command of another test made of it is over: its level, and where its lines went."""
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    root.handlers[:] = [each for each in root.handlers if type(each) is not logging.StreamHandler]
    logging.captureWarnings(False)


@pytest.fixture(scope="module")
def token_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    """A broker with authentication and authorization, prepared for the table of permissions."""
    directory = tmp_path_factory.mktemp("access")
    with InProcessBroker(directory / "data", access.settings(directory) | NO_JOB) as broker:
        access.Player(broker.service_url, broker.web_url).prepare()
        yield broker


@pytest.fixture(scope="module")
def access_player(token_broker: InProcessBroker) -> access.Player:
    """Asks `token_broker` in the name of any role."""
    return access.Player(token_broker.service_url, token_broker.web_url)
