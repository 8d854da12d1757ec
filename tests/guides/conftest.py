"""The package as a wheel, built once."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.guides.walk import Walk, build_wheel
from tests.interop.conftest import real_pulsar
from tests.support.standalone_process import free_port

__all__ = ["WalkFactory", "reader", "real_pulsar", "wheel"]

WalkFactory = Callable[..., Walk]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def reader(tmp_path: Path, wheel: Path) -> WalkFactory:
    """Makes somebody who follows a page; the ports that everybody knows are free ones here."""

    def make(installed: str | None = None, replaced: Mapping[str, str] | None = None) -> Walk:
        binary, web = free_port(), free_port()
        environment = {
            "brokerServicePort": binary,
            "webServicePort": web,
            "brokerServiceUrl": f"pulsar://localhost:{binary}",
            "webServiceUrl": f"http://localhost:{web}",
        }
        ports = {"localhost:6650": f"localhost:{binary}", "localhost:8080": f"localhost:{web}"}
        all_replaced = {**(replaced or {}), **ports}
        return Walk(tmp_path, wheel, installed=installed, replaced=all_replaced, environment=environment)

    return make
