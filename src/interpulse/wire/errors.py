"""Whose fault a broken conversation is."""

from __future__ import annotations

__all__ = ["LocalProtocolError", "RemoteProtocolError"]


class LocalProtocolError(Exception):
    """We tried to say something that this connection does not allow now: a bug on our side."""


class RemoteProtocolError(Exception):
    """The peer sent something that the protocol does not allow: close this connection, and only this one."""
