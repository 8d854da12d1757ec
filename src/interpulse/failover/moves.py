"""Ways to move clients that need no broker: the file of Java's ControlledClusterFailover, and a program.

Source: PIP-121 (ControlledClusterFailover), whose JSON the file has.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from interpulse.failover.journal import replace_file
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.pair_config import FILE, HOOK, ClientMoves

_SHOWN_MAX: Final = 500


class Direction(NamedTuple):
    """One change of sites, for the program that moves clients."""

    origin: str
    target: str
    client_url: str
    pair: str
    epoch: int

    @property
    def values(self) -> dict[str, str]:
        """Return the values of the names in braces."""
        shown = {"to": self.target, "from": self.origin, "client_url": self.client_url, "pair": self.pair}
        return {**shown, "epoch": str(self.epoch)}


async def name_target(moves: ClientMoves, direction: Direction, *, hook_s: float) -> None:
    """Write the file and run the program, as far as they are ways of the pair.

    Raise OperationFailed if one fails, or if the program takes longer than ``hook_s`` seconds.
    """
    if FILE in moves.move and moves.file is not None:
        write_document(moves.file, direction.client_url)
    if HOOK in moves.move:
        await run_hook(moves.hook, direction.values, hook_s)


def document_of(client_url: str) -> str:
    """Return the file that sends clients to an address. They keep their credentials."""
    return json.dumps({"serviceUrl": client_url}) + "\n"


def is_written(path: str, client_url: str) -> bool:
    """Return True if the file sends clients to this address."""
    try:
        return Path(path).read_text(encoding="utf-8") == document_of(client_url)
    except (OSError, UnicodeDecodeError):
        return False


def write_document(path: str, client_url: str) -> None:
    """Replace the file as a whole. Raise OperationFailed if it cannot be written."""
    try:
        replace_file(Path(path), document_of(client_url))
    except OSError as error:
        raise OperationFailed(
            f"[clients] file {path} cannot be written: {error.strerror}. Repair it; the same command goes on",
            Outcome.BROKEN_OFF,
        ) from error


async def run_hook(arguments: Sequence[str], values: Mapping[str, str], limit_s: float) -> None:
    """Run a program with these values in its arguments. Raise OperationFailed if it fails.

    After ``limit_s`` seconds it is killed, with all processes that it started.
    """
    command = [filled(argument, values) for argument in arguments]
    try:
        process = await _started(command)
    except OSError as error:
        raise _hook_failed(command, str(error.strerror)) from error
    try:
        async with asyncio.timeout(limit_s):
            output, _ = await process.communicate()
    except TimeoutError as error:
        await _kill_group(process)
        raise _hook_failed(command, f"it did not end within {limit_s:g} s, hook_s in [limits]") from error
    except asyncio.CancelledError:
        await _kill_group(process)
        raise
    if process.returncode:
        shown = output.decode(errors="replace").strip()[-_SHOWN_MAX:]
        raise _hook_failed(command, f"it ended with {process.returncode}: {shown or 'no output'}")


async def _started(command: Sequence[str]) -> Process:
    """Start a program in a group of its own. It may run before this returns, also if this is interrupted."""
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, start_new_session=True)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _kill_group(await starting)
        raise


async def _kill_group(process: Process) -> None:
    """Kill a program and what it started, which may outlive it, and wait for its end."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def filled(argument: str, values: Mapping[str, str]) -> str:
    """Return an argument of the program with the values in place of their names in braces."""
    for name, value in values.items():
        argument = argument.replace(f"{{{name}}}", value)
    return argument


def _hook_failed(command: Sequence[str], reason: str) -> OperationFailed:
    return OperationFailed(
        f"[clients] hook {' '.join(command)} failed: {reason}. Repair it; the same command goes on", Outcome.BROKEN_OFF
    )
