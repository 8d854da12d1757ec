"""Output to one client, collected during a turn of the event loop and written in one call.

One write per frame costs four times the throughput of joined ones, but joining large entries would copy them. So small
pieces are joined and large ones are written as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

# From this size on, copying a piece costs more than a write of its own.
_PIECE_BYTES_LARGE: Final = 32 * 1024
_JOINED_BYTES_MAX: Final = 256 * 1024


class Output:
    """Collects frames for one transport and writes them once per turn of the loop.

    ``bytes_waiting`` counts the frames of this turn and those that the transport has not sent yet.
    """

    __slots__ = ("_loop", "_pieces", "_transport", "bytes_collected")

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.WriteTransport) -> None:
        self._loop = loop
        self._transport = transport
        self._pieces: list[bytes] = []
        self.bytes_collected = 0
        """Bytes that wait for the end of this turn."""

    @property
    def bytes_waiting(self) -> int:
        return self.bytes_collected + self._transport.get_write_buffer_size()

    def send(self, frame: bytes) -> None:
        if not self._pieces:
            self._loop.call_soon(self.flush)
        self._pieces.append(frame)
        self.bytes_collected += len(frame)

    def send_pieces(self, pieces: Iterable[bytes], size: int) -> None:
        """Write these pieces, ``size`` bytes in all, without joining large ones."""
        if not self._pieces:
            self._loop.call_soon(self.flush)
        self._pieces.extend(pieces)
        self.bytes_collected += size

    def flush(self) -> None:
        """Hand the collected frames to the transport now."""
        pieces = self._pieces
        if not pieces:
            return
        size, self.bytes_collected = self.bytes_collected, 0
        self._pieces = []
        if self._transport.is_closing():
            return
        if size <= _JOINED_BYTES_MAX:
            self._transport.write(b"".join(pieces))
        else:
            self._transport.writelines(_join_small(pieces))


def _join_small(pieces: list[bytes]) -> list[bytes]:
    joined: list[bytes] = []
    run: list[bytes] = []
    for piece in pieces:
        if len(piece) < _PIECE_BYTES_LARGE:
            run.append(piece)
            continue
        if run:
            joined.append(b"".join(run))
            run = []
        joined.append(piece)
    if run:
        joined.append(b"".join(run))
    return joined
