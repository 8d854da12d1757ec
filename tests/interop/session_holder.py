"""A broker's session without a broker: holds an ephemeral node, and says on request whether it may rely on it.

``python -m tests.interop.session_holder ADDRESS KEY MILLISECONDS``: every line on standard input is answered with one
that tells whether the session holds, and what became of a write that was sent through it.
"""

from __future__ import annotations

import asyncio
import sys

from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.errors import OutcomeUnknown, SessionExpired
from interpulse.storage.zookeeper.link import LinkConfig


async def main(address: str, key: str, timeout_ms: int) -> None:
    """Answer until the input ends."""
    client = await ZooKeeperClient.connect(address, LinkConfig(session_timeout_ms=timeout_ms))
    await client.create(key, b"", ephemeral=True)
    await client.create(f"{key}-record", b"0")
    sys.stdout.write("holds\n")
    sys.stdout.flush()
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while await lines.readline():
        holds = client.session.holds()  # before anything else runs
        try:
            await client.set(f"{key}-record", b"late")
            written = "written"
        except (OutcomeUnknown, SessionExpired) as error:
            written = type(error).__name__
        sys.stdout.write(f"{'holds' if holds else 'suspect'} {written}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
