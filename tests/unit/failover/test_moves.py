"""The file and the program that move clients."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from interpulse.client.failover.controlled import site_from_document
from interpulse.client.failover.sites import Site
from interpulse.failover.moves import is_written, run_hook, write_document
from interpulse.failover.outcome import OperationFailed, Outcome
from tests.support.waiting import SECONDS_MAX, eventually

WEST = "pulsar://west.example:6650"
VALUES = {"to": "west", "client_url": WEST}


def test_file_when_written_then_sends_our_own_client_there(tmp_path: Path) -> None:
    path = tmp_path / "service-url.json"
    assert not is_written(str(path), WEST)
    write_document(str(path), WEST)
    assert is_written(str(path), WEST)
    assert not is_written(str(path), "pulsar://east.example:6650")
    assert site_from_document(json.loads(path.read_text()), Site("pulsar://east.example:6650")).service_url == WEST


def test_file_when_its_directory_is_absent_then_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperationFailed, match=r"file \S+url\.json cannot be written: No such file") as caught:
        write_document(str(tmp_path / "absent" / "url.json"), WEST)
    assert caught.value.outcome is Outcome.BROKEN_OFF


async def test_program_when_run_then_gets_the_values_without_a_shell(tmp_path: Path) -> None:
    script = "import sys; open(sys.argv[1], 'w').write(' '.join(sys.argv[2:]))"
    path = tmp_path / "moved; touch x"
    await run_hook([sys.executable, "-c", script, str(path), "{to}", "at={client_url}", "{unknown}"], VALUES, 60)
    assert path.read_text() == f"west at={WEST} {{unknown}}"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([sys.executable, "-c", "import sys; print('no such zone'); sys.exit(3)"], "it ended with 3: no such zone"),
        ([sys.executable, "-c", "import sys; sys.exit(1)"], "it ended with 1: no output"),
        (["/absent/program", "{to}"], "/absent/program west failed: No such file"),
    ],
)
async def test_program_when_it_fails_then_its_end_is_reported(arguments: list[str], reason: str) -> None:
    with pytest.raises(OperationFailed) as caught:
        await run_hook(arguments, VALUES, 60)
    assert reason in str(caught.value)
    assert caught.value.outcome is Outcome.BROKEN_OFF


FAMILY = """
sleep 600 &
echo $$ $! > "$0.new" && mv "$0.new" "$0"
test "$1" = ends || wait
"""
"""Program that starts another one, which holds its output. It waits for it, or ends."""


def are_gone(path: Path) -> bool:
    """Return True if the processes that a family has written down run no longer."""
    states = [Path(f"/proc/{number}/stat") for number in path.read_text().split()]
    return not any(state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z" for state in states)


@pytest.mark.parametrize("word", ["waits", "ends"])
async def test_program_when_it_takes_too_long_then_is_killed_with_what_it_started(tmp_path: Path, word: str) -> None:
    path = tmp_path / "numbers"
    with pytest.raises(
        OperationFailed, match=r"failed: it did not end within 1 s, hook_s in \[limits\]\. Repair it"
    ) as error:
        await run_hook(["/bin/sh", "-c", FAMILY, str(path), word], VALUES, 1)
    assert error.value.outcome is Outcome.BROKEN_OFF
    await eventually(lambda: are_gone(path))


async def test_program_when_the_command_is_interrupted_then_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    running = asyncio.create_task(run_hook(["/bin/sh", "-c", FAMILY, str(path), "waits"], VALUES, SECONDS_MAX))
    await eventually(path.exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await eventually(lambda: are_gone(path))
