"""The targets of fuzzing, and the inputs that are known for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

CORPORA = Path(__file__).parent / "corpora"
TARGETS = sorted(path.stem for path in (Path(__file__).parent / "targets").glob("[a-z]*.py"))


def target(name: str) -> Callable[[bytes], None]:
    """What takes one input, and raises for a fault."""
    tested: Callable[[bytes], None] = _module(name).one
    return tested


def inputs_of(name: str) -> Iterator[bytes]:
    """What the target starts from: good inputs, and those of the repository."""
    yield from _module(name).seeds()
    for path in sorted((CORPORA / name).glob("*")):
        yield path.read_bytes()


def _module(name: str) -> Any:
    return import_module(f"tests.fuzz.targets.{name}")
