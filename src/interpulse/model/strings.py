"""Type checks for arrays and objects of strings in JSON."""

from __future__ import annotations

from typing import Any, TypeGuard


def are_strings(value: Any) -> TypeGuard[list[str]]:
    """Return True for an array of strings."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def is_string_map(value: Any) -> TypeGuard[dict[str, str]]:
    """Return True for an object whose values are strings."""
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
