"""Results as YAML, written by PyYAML, quoting strings that a YAML 1.1 or 1.2 parser would read differently."""

from __future__ import annotations

import re
from typing import Final

import yaml

_PLAIN: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./+-]*(://[A-Za-z0-9_./+-]+)?")
_NOT_PLAIN: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent the items of a list below its key."""
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:
        """Write a repeated value again instead of an alias."""
        return True


def _string(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """Quote strings such as ``1e3``. PyYAML would not: they are strings in YAML 1.1, but numbers in YAML 1.2."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _string)
_Dumper.add_multi_representer(str, _string)  # enumerations of strings


def dump(value: object) -> str:
    """Format in block style, preserving the order of keys and without line breaks in values."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))
    return text.removesuffix("\n").removesuffix("\n...")
