"""The two sides that can break a protocol."""

from __future__ import annotations


class LocalProtocolError(Exception):
    """A local bug: this side tried to send something that the connection does not allow now."""


class RemoteProtocolError(Exception):
    """The peer sent something that the protocol does not allow. Close this connection, and only this one."""
