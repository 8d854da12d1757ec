"""Report the coverage of each module by its own test file alone, lines and branches.

    python -m tools.own_coverage [ARGUMENT...]

The own test file of ``src/interpulse/rules/topics.py`` is ``tests/unit/rules/test_topics.py``. The arguments go to
pytest; the default is all unit tests that are not slow. The report also lists modules without a test file, and test
files without a module. It judges nothing: the exit code is that of pytest.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Sequence
from io import StringIO
from pathlib import Path

import pytest
from coverage import Coverage
from coverage.exceptions import NoDataError

ROOT = Path(__file__).parent.parent
UNIT = Path("tests/unit")
PACKAGE = Path("src/interpulse")
SUPPORT = Path("tests/support")
"""Helpers of tests, whose own tests are among the unit tests."""


class FileContexts:
    """A plugin of pytest that attributes the lines a test runs to the file of the test."""

    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._coverage.switch_context(item.path.relative_to(ROOT).as_posix())
        try:
            return (yield)
        finally:
            self._coverage.switch_context("")


def main(arguments: Sequence[str]) -> int:
    coverage = Coverage(data_file=None, branch=True, source=[str(ROOT / PACKAGE)])
    coverage.start()
    code = pytest.main(["-q", *(arguments or [str(UNIT), "-m", "not slow"])], plugins=[FileContexts(coverage)])
    coverage.stop()
    test_files = sorted(path.relative_to(ROOT) for path in (ROOT / UNIT).rglob("test_*.py"))
    modules = [path.relative_to(ROOT) for path in (ROOT / PACKAGE).rglob("*.py") if _has_code(path)]
    run = coverage.get_data().measured_contexts()
    rows = []
    for module in modules:
        test_file = own_test_of(module)
        if test_file.as_posix() in run:
            rows.append((_percent(coverage, module, test_file), module))
    for percent, module in sorted(rows):
        print(f"{percent:6.1f} %  {module}")
    untested, without_module = unpaired(modules, test_files)
    _print_list("modules without a test file", untested)
    _print_list("test files without a module", without_module)
    return int(code)


def own_test_of(module: Path) -> Path:
    """Return the path of the test file of a module."""
    inside = module.relative_to(PACKAGE)
    return UNIT / inside.with_name(f"test_{inside.name}")


def module_of(test_file: Path) -> Path:
    """Return the path of the module that a unit test file is named after."""
    inside = test_file.relative_to(UNIT)
    inside = inside.with_name(inside.name.removeprefix("test_"))
    return SUPPORT.joinpath(*inside.parts[1:]) if inside.parts[0] == SUPPORT.name else PACKAGE / inside


def unpaired(modules: Iterable[Path], test_files: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Return the modules without a test file, and the test files without a module."""
    modules, test_files = set(modules), set(test_files)
    without_module = {path for path in test_files if module_of(path) not in modules}
    return (
        sorted(path for path in modules if own_test_of(path) not in test_files),
        sorted(path for path in without_module if not (ROOT / module_of(path)).exists()),
    )


def _has_code(path: Path) -> bool:
    return path.name != "__init__.py" and not path.stem.endswith("_pb2")


def _percent(coverage: Coverage, module: Path, test_file: Path) -> float:
    """Return the coverage by one test file. Lines that importing the module runs count as covered."""
    contexts = [f"^{test_file.as_posix()}$", "^$"]
    try:
        return coverage.report([str(ROOT / module)], contexts=contexts, file=StringIO())
    except NoDataError:
        return 0.0


def _print_list(title: str, paths: Sequence[Path]) -> None:
    print(f"\n{len(paths)} {title}", *paths, sep="\n  ")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
