"""Two key pairs."""

import pytest

from tests.support.encryption_keys import KeyFiles, new_keys


@pytest.fixture(scope="session")
def orders(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    return new_keys(tmp_path_factory.mktemp("orders"), "orders")


@pytest.fixture(scope="session")
def returns(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    return new_keys(tmp_path_factory.mktemp("returns"), "returns")
