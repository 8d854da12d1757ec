"""The first frame of a client, cut off its bytes: CONNECT decides whether the rest is for the proxy or for a broker."""

from __future__ import annotations

from typing import Final

from interpulse.wire.errors import RemoteProtocolError

__all__ = ["FirstFrame"]

_CONNECT_BYTES_MAX: Final = 128 * 1024
"""Enough for large tokens, for clients that have not authenticated yet."""


class FirstFrame:
    """Bytes collected until the first frame is complete."""

    def __init__(self) -> None:
        self._collected = bytearray()

    def feed(self, data: bytes) -> tuple[bytes, bytes] | None:
        """Return the first frame and the bytes behind it; None until it is complete. Raise RemoteProtocolError."""
        self._collected += data
        if len(self._collected) < 4:
            return None
        end = 4 + int.from_bytes(self._collected[:4], "big")
        if end > _CONNECT_BYTES_MAX:
            raise RemoteProtocolError(f"the first frame has {end} bytes, the limit is {_CONNECT_BYTES_MAX}")
        if len(self._collected) < end:
            return None
        return bytes(self._collected[:end]), bytes(self._collected[end:])
