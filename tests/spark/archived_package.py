"""The package as an archive for ``--py-files``, and a Python that has what Spark itself needs and nothing else."""

from __future__ import annotations

import shutil
import sys
import venv
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

import interpulse
import pyspark_interpulse

_OF_SPARK = ("pyspark", "py4j", "pyarrow", "numpy")


def archive(path: Path, *, with_dependencies: bool = True) -> Path:
    """What ``pip install --target`` of the package gives, as an archive."""
    root = install(path.with_suffix(""), with_dependencies=with_dependencies)
    return Path(shutil.make_archive(str(root), "zip", root))


def install(root: Path, *, with_dependencies: bool = True) -> Path:
    """As ``pip install --target``, from where the package and what it needs are installed; without registries."""
    for package in (interpulse, pyspark_interpulse):
        place = Path(str(package.__file__)).parent
        _copy(place.rglob("*"), place.parent, root)
    for name in needed("interpulse") if with_dependencies else ():
        place = Path(str(distribution(name).locate_file("")))
        _copy((place / each for each in distribution(name).files or () if ".." not in each.parts), place, root)
    return root


def _copy(files: Iterable[Path], packages: Path, root: Path) -> None:
    for file in files:
        if file.is_file() and file.suffix != ".pyc":
            copied = root / file.relative_to(packages)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copied)


def needed(name: str) -> set[str]:
    """Names of the distributions that one needs without its extras."""
    requirements = [Requirement(line) for line in distribution(name).requires or ()]
    names = {each.name for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})}
    return names.union(*map(needed, names))


def bare_python(directory: Path, *more: str) -> Path:
    """The interpreter of an environment of its own; ``more``: distributions that it has besides."""
    venv.create(directory, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = directory / "lib" / version / "site-packages"
    for name in (*_OF_SPARK, *more):
        for root in distribution(name).files or ():
            top = root.parts[0]
            link = packages / top
            if top not in ("..", "__pycache__") and not link.exists():
                link.symlink_to(Path(str(distribution(name).locate_file(top))))
    return directory / "bin" / "python"
