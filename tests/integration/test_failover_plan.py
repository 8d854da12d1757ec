"""The runbook of a switch, whose commands are run as printed (F34 of failover.md)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from interpulse.cli.failover.group import failover
from interpulse.failover.commands import initialise
from interpulse.failover.pair import opened_pair
from interpulse.rules.failover_role import Role
from tests.support.copying_pair import NAMESPACE, PARTITIONS, TOPIC, CopyingPair, copying_pair
from tests.support.waiting import SECONDS_MAX

PROGRAMS = Path(sys.executable).parent
MESSAGES = 40


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[CopyingPair]:
    async with copying_pair(tmp_path) as made:
        async with opened_pair(made.config()) as opened:
            await initialise(opened)
        yield made


@pytest.fixture
async def runbook(pair: CopyingPair, tmp_path: Path) -> Path:
    """The runbook of a switch to west, as the command writes it."""
    file, path = tmp_path / "pair.toml", tmp_path / "runbook.md"
    file.write_text("\n".join(_table(name, values) for name, values in pair.tables().items()))
    arguments = ["plan", "switch", "--config", str(file), "--to", "west", "-o", str(path)]
    result = await asyncio.to_thread(CliRunner().invoke, failover, arguments)
    assert result.exit_code == 0, result.output
    return path


def _table(name: str, values: dict[str, object]) -> str:
    return "\n".join([f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())])


def blocks(runbook: Path, language: str) -> list[str]:
    tokens = MarkdownIt().parse(text_of(runbook))
    return [token.content for token in tokens if token.type == "fence" and token.info == language]


def text_of(runbook: Path) -> str:
    return runbook.read_text()


async def run_as_printed(blocks: Sequence[str], directory: Path) -> list[str]:
    """Run blocks in order as the runbook says: exit codes 0 and 1 go on. Return what each printed."""
    environment = {**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    printed = []
    for block in blocks:
        command = ["bash", "-c", block.replace("pulsar-admin ", "interpulse-admin ")]
        done = await asyncio.to_thread(
            subprocess.run, command, cwd=directory, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX
        )
        assert done.returncode in (0, 1), f"{block}{done.stdout}{done.stderr}"
        printed.append(done.stdout)
    return printed


async def publish(pair: CopyingPair) -> None:
    producer = await pair.clients["east"].create_producer(str(TOPIC), batching_enabled=False)
    await asyncio.gather(*(producer.send(str(number)) for number in range(MESSAGES)))
    await producer.close()


@pytest.mark.slow
async def test_runbook_when_its_commands_are_run_in_order_then_the_pair_is_switched(
    pair: CopyingPair, runbook: Path, tmp_path: Path
) -> None:
    await publish(pair)
    printed = await run_as_printed(blocks(runbook, "sh"), tmp_path)
    roles = await pair.roles()
    assert [(roles[site].role, roles[site].epoch) for site in ("east", "west")] == [(Role.MOVED, 2), (Role.ACTIVE, 2)]
    assert "east -> west, ready" in printed[1]
    assert "promote west" in printed[3]
    assert sum(map(len, await pair.contents("west"))) == MESSAGES


async def test_runbook_when_it_is_followed_by_hand_then_the_pair_is_switched(
    pair: CopyingPair, runbook: Path, tmp_path: Path
) -> None:
    await publish(pair)
    fence, drain, settle, promote, move, stand_by = blocks(runbook, "bash")
    (answer,) = await run_as_printed([fence], tmp_path)
    assert len(json.loads(answer)["positions"]) == PARTITIONS
    async with asyncio.timeout(SECONDS_MAX):
        while sum(map(len, await pair.contents("west"))) < MESSAGES:  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.1)
    copies, settled, *_ = await run_as_printed([drain, settle, promote, move], tmp_path)
    assert copies.count("__MSG_PROP_REPL_SOURCE_POSITION") == PARTITIONS
    assert {record["cluster"] for record in json.loads(settled)} == {"west"}
    roles = await pair.roles()
    assert [(roles[site].role, roles[site].epoch) for site in ("east", "west")] == [(Role.MOVED, 2), (Role.ACTIVE, 2)]
    await run_as_printed([stand_by], tmp_path)
    assert (await pair.roles())["east"].role is Role.STANDBY


async def test_runbook_when_read_then_has_all_parts_of_each_step(runbook: Path) -> None:
    text = text_of(runbook)
    assert text.startswith(
        f"# Switch orders from east to west\n\nNamespaces: {NAMESPACE}; {PARTITIONS} topic-partitions"
    )
    assert text.count("\n## ") == 11
    for part in ("Holds when", "Undo", "Takes", "Decides"):
        assert text.count(f"* **{part}**: ") == 10
