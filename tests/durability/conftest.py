"""A small disk for tests that name it ``disk``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.durability.small_disk import CannotMount, SmallDisk, run_where_mounting_is_allowed, small_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk | None]:
    """None where nothing can be mounted: then the test is not called, but runs in a process of its own."""
    with ExitStack() as mounted:
        try:
            disk = mounted.enter_context(small_disk(tmp_path / "data", megabytes=24))
        except CannotMount:
            disk = None
        yield disk


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if "disk" not in pyfuncitem.funcargs or pyfuncitem.funcargs["disk"] is not None:
        return None
    run_where_mounting_is_allowed(pyfuncitem)
    return True
