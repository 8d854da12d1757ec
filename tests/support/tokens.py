"""Tokens of one secret key, for tests of authentication."""

from __future__ import annotations

from typing import Final

import jwt

SECRET: Final = bytes(range(32))


def signed(**claims: object) -> str:
    """A token with these claims, whether they make sense or not."""
    return jwt.encode(claims, SECRET, algorithm="HS256")
