"""Processes without pandas: PySpark and Arrow import it if it is installed, which takes two seconds of a processor."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Final

_PANDAS: Final = "pandas"


class _Excluding(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname == _PANDAS:
            raise ModuleNotFoundError("pandas is excluded from this process, which does not need it", name=fullname)


def exclude_pandas() -> None:
    """Let imports of pandas fail in this process from now on, as if it was not installed.

    For processes of our own programs only, which work on Arrow batches. Functions of users may need pandas. Nothing
    changes in a process that has imported it.
    """
    if _PANDAS not in sys.modules and not any(isinstance(finder, _Excluding) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Excluding())
