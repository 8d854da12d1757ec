"""BookKeeper's Java client in a process of its own, told line by line what to do to ledgers."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.interop.real_pulsar.java import _compiled
from tools.engines.java import LOGGING, QUICK_JAVA, java_command

CHECKS = Path(__file__).with_name("checks")


class JavaLedgers:
    """Its client, with a session of its own. An answer that begins with "error" names the class of the exception."""

    def __init__(self, zookeeper: str, password: str = "") -> None:
        options = (*QUICK_JAVA, "-Xmx192m", f"-Dlog4j2.configurationFile={LOGGING}")
        arguments = [zookeeper, *([password] if password else [])]
        command = java_command(*options, "Ledgers", *arguments, classes=_compiled(CHECKS))
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1)

    async def ask(self, *words: object) -> str:
        """The answer to one line."""
        return await asyncio.to_thread(self._ask, " ".join(map(str, words)))

    def stop(self) -> None:
        """End it at once, without closing its ledgers."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


def as_read(payloads: Iterable[bytes]) -> str:
    """What the Java client answers to "read" if it finds these entries."""
    found = list(payloads)
    return f"{len(found)} {hashlib.sha1(b''.join(found)).hexdigest()}"
