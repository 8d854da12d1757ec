"""Lines of standard input, read in the background."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import AsyncIterator
from typing import Final

from interpulse.cli.support.running import CommandFailed

_LINE_MAX: Final = 64 * 1024 * 1024


async def lines_of_standard_input() -> AsyncIterator[bytes]:
    """Yield lines without their ends as they arrive. Raise CommandFailed for a line above 64 MiB."""
    source = sys.stdin.buffer
    reader = asyncio.StreamReader(limit=_LINE_MAX)
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    except (ValueError, io.UnsupportedOperation):  # a file, whose reads never wait
        for line in source:
            yield _without_end(line)
        return
    try:
        while line := await reader.readline():
            yield _without_end(line)
    except ValueError as error:
        raise CommandFailed(f"a line of standard input is longer than {_LINE_MAX} bytes") from error
    finally:
        transport.close()


def _without_end(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")
