"""kill -9 while a process appends: what it reported as acknowledged is there, and ledger ids are never used again."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from interpulse.storage.metadata.sqlite import SqliteMetadataStore
from interpulse.storage.segments.journal import open_log_store
from tests.durability import kill_writer
from tests.support.soak import SOAKING
from tests.unit.storage.listeners import Listener, read_all

Acknowledged = dict[tuple[str, int], int]  # last entry by log and ledger


def run_and_kill(directory: Path, life: int, groups: int) -> Acknowledged:
    """Let the writer live for so many reports."""
    command = [sys.executable, kill_writer.__file__, str(directory), str(life)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        lines = [writer.stdout.readline() for _ in range(groups)]
        killer = threading.Thread(target=writer.kill)  # while it goes on writing and we read on
        killer.start()
        lines += writer.stdout.read().splitlines(keepends=True)
        killer.join()
    acknowledged: Acknowledged = {}
    for line in lines:
        if line.endswith("\n"):
            name, ledger, entry = line.split()
            acknowledged[name, int(ledger)] = int(entry)
    return acknowledged


@pytest.mark.parametrize("rounds", [3, pytest.param(20, marks=pytest.mark.slow)] if SOAKING else [3])
async def test_store_when_killed_under_load_then_acknowledged_entries_are_there_in_order(
    tmp_path: Path, rounds: int
) -> None:
    acknowledged: Acknowledged = {}
    for number in range(rounds):
        reported = run_and_kill(tmp_path, number, 20 + 37 * number % 200)
        assert not set(reported) & set(acknowledged), "a ledger id was used twice"
        acknowledged |= reported
    metadata = await SqliteMetadataStore.open(tmp_path / "metadata.sqlite")
    store = await open_log_store(tmp_path / "log", metadata)
    for name in sorted({name for name, _ in acknowledged}):
        log = await store.open(name, Listener(), create=False)
        held = {row.ledger_id: row.entries for row in log.ledgers}
        for (owner, ledger), last in acknowledged.items():
            if owner == name:
                assert held[ledger] > last
        payloads = await read_all(log, entries_max=5000, bytes_max=1 << 30)
        assert len(payloads) == sum(held.values())
        assert payloads == sorted(set(payloads)), "entries twice or out of order"
    await store.close()
    await metadata.close()
