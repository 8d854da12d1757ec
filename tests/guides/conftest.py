"""The package as a wheel, built once."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pyspark
import pytest

from interpulse.spark.class_archive import archive_path, java_options
from tests.guides.walk import Walk, build_wheel, install
from tests.interop.conftest import real_pulsar
from tests.support.standalone_process import free_port

__all__ = ["WalkFactory", "reader", "real_pulsar", "wheel"]

WalkFactory = Callable[..., Walk]

SMALL_SPARK = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
"""Nobody looks at its pages, and a handful of rows are no work for two hundred tasks."""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def shared_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with what a broker needs, for pages that install nothing."""
    return install(wheel, "broker", tmp_path_factory.mktemp("installed") / "venv")


@pytest.fixture
def reader(tmp_path: Path, wheel: Path, request: pytest.FixtureRequest) -> WalkFactory:
    """Makes a reader who follows a page, with the package installed where ``prepared`` says so (``"own"``: the page
    changes what is installed); the well-known ports are free ones here. One who begins with nothing starts Spark as it
    comes, the others as one who has made the archive of its classes."""

    def make(prepared: str | None = None, replaced: Mapping[str, str] | None = None) -> Walk:
        installed = None
        if prepared == "own":
            installed = install(wheel, "broker", tmp_path / "venv")
        elif prepared == "shared":
            installed = request.getfixturevalue("shared_environment")
        binary, web = free_port(), free_port()
        environment = {
            "brokerServicePort": binary,
            "webServicePort": web,
            "brokerServiceUrl": f"pulsar://localhost:{binary}",
            "webServiceUrl": f"http://localhost:{web}",
            **(_archived_spark() if prepared else {}),
        }
        ports = {"localhost:6650": f"localhost:{binary}", "localhost:8080": f"localhost:{web}"}
        all_replaced = {**(replaced or {}), **ports}
        return Walk(tmp_path, wheel, installed=installed, replaced=all_replaced, environment=environment)

    return make


def _archived_spark() -> dict[str, str]:
    """Spark from the jars whose classes are in this machine's archive: the version is that of the page's own."""
    path = archive_path()
    if path is None or not path.exists():
        return {}
    options = " ".join([java_options(), *(f"-D{key}={value}" for key, value in SMALL_SPARK.items())])
    return {"SPARK_HOME": str(Path(pyspark.__file__).parent), "SPARK_SUBMIT_OPTS": options}
