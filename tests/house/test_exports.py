"""The public names of the distribution, kept as a list: a name that comes or goes is seen in the diff."""

import importlib
import os
from pathlib import Path

import pytest

PUBLIC_PACKAGES = (
    "interpulse",
    "interpulse.client",
    "interpulse.model.errors",
    "interpulse.model.ids",
    "interpulse.model.names",
    "interpulse.spark",
    "interpulse.sync",
    "interpulse.testing",
    "pyspark_interpulse",
)
LIST = Path(__file__).with_name("public_names.txt")


def exported_names() -> list[str]:
    """Every name in the `__all__` of the public packages."""
    packages = {name: importlib.import_module(name) for name in PUBLIC_PACKAGES}
    return [f"{name}.{exported}" for name, package in packages.items() for exported in sorted(package.__all__)]


def test_public_names_when_listed_then_equal_the_kept_list() -> None:
    """REWRITE=1 takes the present names into the list."""
    names = exported_names()
    if os.environ.get("REWRITE") == "1":
        LIST.write_text("".join(f"{name}\n" for name in names))
    assert names == LIST.read_text().split()


@pytest.mark.parametrize("package_name", PUBLIC_PACKAGES)
def test_public_names_when_imported_then_exist_once(package_name: str) -> None:
    package = importlib.import_module(package_name)
    assert len(package.__all__) == len(set(package.__all__))
    assert not [name for name in package.__all__ if not hasattr(package, name)]
