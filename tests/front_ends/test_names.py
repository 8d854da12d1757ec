"""Names that are none are refused by every command, in the form that answers it, and create nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from interpulse.testing import InProcessBroker
from tests.front_ends.brokers import our_broker
from tests.front_ends.names import NAMES, PATHS, REFUSALS, Name, refusals_of_name, statuses_of_path
from tests.front_ends.records import stored_below


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    with our_broker(tmp_path_factory.mktemp("names")) as broker:
        before = broker.call(lambda app: stored_below(app.registry.metadata, "/"))
        yield broker
        assert broker.call(lambda app: stored_below(app.registry.metadata, "/")) == before


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.id)
def test_name_that_is_none(broker: InProcessBroker, name: Name) -> None:
    assert list(refusals_of_name(broker.service_url, name.text)) == REFUSALS


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.id)
def test_path_that_names_no_topic(broker: InProcessBroker, path: Name) -> None:
    assert statuses_of_path(broker.web_url, path.text) == [412] * 3
