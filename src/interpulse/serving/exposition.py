"""The text format of Prometheus: families of samples, each family in one piece."""

from __future__ import annotations

from typing import Final, Literal

__all__ = ["CONTENT_TYPE", "Exposition", "Kind", "labelled"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["counter", "gauge", "summary"]

_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def labelled(**labels: str) -> str:
    """The labels of a sample as they stand between its braces."""
    return ",".join([f'{name}="{_escaped(value)}"' for name, value in labels.items()])


def _escaped(value: str) -> str:
    if '"' in value or "\\" in value or "\n" in value:  # hardly ever, and translating costs more than looking
        return value.translate(_ESCAPES)
    return value


class Exposition:
    """Families in the order in which they were begun."""

    def __init__(self) -> None:
        self._families: dict[str, list[str]] = {}

    def family(self, name: str, kind: Kind, text: str) -> list[str]:
        """The lines of a family, to which samples are appended (`sample`); the same list when asked again."""
        return self._families.setdefault(name, [f"# HELP {name} {text}\n# TYPE {name} {kind}\n"])

    def add(self, name: str, kind: Kind, text: str, labels: str, value: float) -> None:
        """One sample of a family."""
        self.family(name, kind, text).append(f"{name}{{{labels}}} {value}\n")

    def render(self) -> bytes:
        """The page; a family without samples is left out."""
        return "".join("".join(lines) for lines in self._families.values() if len(lines) > 1).encode()
