"""The commands ``interpulse failover`` as programs: their output, exit codes, calls of the admin API, and kills."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from interpulse.cli.main import main
from interpulse.client.admin.admin_client import AdminClient
from interpulse.failover.commands import initialise, switch, undo
from interpulse.failover.outcome import OperationFailed
from interpulse.failover.pair import opened_pair
from interpulse.failover.pair_config import SiteAddress
from interpulse.failover.takeover.command import take_over
from interpulse.failover.takeover.takeover import Known
from interpulse.rules.failover_role import Role
from tests.integration.test_switch import Shown, publish
from tests.support.copying_pair import CopyingPair, copying_pair

CHANGES_ALLOWED = (
    r"PUT /admin/v2/persistent/public/default/interpulse-failover-orders",
    r"PUT /admin/v2/persistent/public/default/interpulse-failover-orders/subscription/interpulse-failover.*",
    r"POST /admin/v2/persistent/public/default/interpulse-failover-orders/replication",
    r"PUT /admin/v2/persistent/public/default/interpulse-failover-orders-heartbeat",
    r"POST /admin/v2/namespaces/public/default/failover",
)
"""All that init, switch, undo and takeover may change: the topic of the tool itself, and roles."""


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[CopyingPair]:
    async with copying_pair(tmp_path) as made:
        yield made


class Ended(NamedTuple):
    """A program that has ended."""

    code: int | None
    output: str
    errors: str

    @property
    def last(self) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self.output.splitlines()[-1])
        return shown


def write_file(pair: CopyingPair, **tables: dict[str, Any]) -> Path:
    """Write the file of the pair: strings, numbers and lists of strings are the same in JSON and TOML."""
    path = pair.directory / "pair.toml"
    lines = [
        line
        for name, table in {**pair.tables(), **tables}.items()
        for line in (f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items()))
    ]
    path.write_text("\n".join(lines))
    return path


async def start(command: str, path: Path, *arguments: str) -> asyncio.subprocess.Process:
    program = (sys.executable, "-m", "interpulse.cli", "failover", command, "--config", str(path))
    return await asyncio.create_subprocess_exec(*program, *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE)


async def run_program(command: str, path: Path, *arguments: str) -> Ended:
    process = await start(command, path, *arguments)
    output, errors = await process.communicate()
    return Ended(process.returncode, output.decode(), errors.decode())


async def run(command: str, path: Path, *arguments: str) -> Ended:
    """Run a command in a thread of this process, which is cheaper than a program."""
    whole = ["failover", command, "--config", str(path), *arguments]
    done = await asyncio.to_thread(CliRunner().invoke, main, whole, catch_exceptions=False)
    return Ended(done.exit_code, done.stdout, done.stderr)


async def test_commands_when_a_pair_is_switched_then_say_what_they_do(pair: CopyingPair) -> None:
    url, mark = pair.directory / "service-url.json", pair.directory / "moved"
    written = "{from} {to} {client_url} {pair} {epoch}"
    hook = [sys.executable, "-c", f"open({str(mark)!r}, 'w').write('{written}')"]
    path = write_file(pair, clients={"move": ["redirect", "file", "hook"], "file": str(url), "hook": hook})
    done = await run_program("init", path, "--yes")
    assert (done.code, done.output) == (0, "orders: east serves, west stands by, epoch 1\n"), done.errors
    await publish(pair, "east", 0)
    done = await run("switch", path, "--to", "west", "--yes")
    assert done.code == 0, done
    lines = done.output.splitlines()
    assert lines[0] == "orders: switch to west, epoch 2"
    names = ("lease", "preflight", "ways open", "fence east", "drain", "settle", "promote west", "move clients")
    for number, (line, name) in enumerate(zip(lines[1:], names, strict=False), 1):
        assert re.match(rf"{number:2} {name} +\d+\.\d s  \S", line), line
    assert re.fullmatch(r"Producers had no site for \d+\.\d s\.", lines[-1])
    west = pair.addresses["west"].service_url
    assert json.loads(url.read_text()) == {"serviceUrl": west}
    assert mark.read_text() == f"east west {west} orders 2"
    done = await run("status", path)
    assert done.code == 0, done
    assert re.search(r"west +west +public/default +active;epoch=2 +2", done.output)
    assert "Last operation: switch to west, epoch 2" in done.output
    done = await run("switch", path, "--to", "east", "--yes", "-o", "json", "--progress", "json")
    steps = [json.loads(line) for line in done.output.splitlines()]
    assert [step.get("number") for step in steps] == [*range(1, 11), None]
    assert (done.code, steps[-1]["outcome"], steps[-1]["operation"]["epoch"]) == (0, "DONE", 3)
    done = await run("status", path, "-o", "json")
    assert [site["roles"]["public/default"].partition(";")[0] for site in done.last["sites"]] == ["active", "moved"]


async def test_commands_when_they_are_refused_then_end_with_their_code(pair: CopyingPair) -> None:
    path = write_file(pair)
    assert (await run("status", path)).code == 1  # both sites serve
    done = await run("init", path)
    assert done.code == 2
    assert "Standard input is no terminal to confirm this on: give --yes" in done.errors
    await run("init", path, "--yes")
    done = await run("switch", path, "--to", "north", "--yes")
    assert (done.code, "north is none of the sites east, west" in done.errors) == (2, True)
    done = await run("undo", path, "--yes", "-o", "json")
    assert (done.code, done.last["outcome"]) == (3, "REFUSED")
    done = await run("switch", path, "--to", "east", "--yes")
    assert (done.code, "west does not serve public/default" in done.errors) == (3, True)
    unusable = pair.directory / "unusable.toml"
    unusable.write_text(path.read_text().replace(f"{pair.directory}/state", f"{path}/state"))
    done = await run("switch", unusable, "--to", "west", "--yes")
    assert (done.code, "the journal cannot be written or read" in done.errors) == (4, True), done
    control = await pair.clients["west"].create_producer("persistent://public/default/interpulse-failover-orders")
    async with control:
        await control.send("no record", key="operation")
        done = await run("status", path)
        assert "is no record of this command" in done.output
        done = await run("status", path, "-o", "json")
        assert [site["site"] for site in done.last["sites"]] == ["east", "west"]
        assert (done.code, "west: the message" in done.last["operationUnknown"]) == (1, True)
        await control.send(None, key="operation")
    assert "is no record of this command" not in (await run("status", path)).output
    without_token = pair.directory / "without-token.toml"
    without_token.write_text(path.read_text().replace("[west]", '[west]\ntoken = "file:///absent.jwt"'))
    done = await run("status", without_token, "-o", "json")
    assert (done.code, done.last["outcome"]) == (2, "UNREACHABLE"), done
    path.write_text(path.read_text().replace(pair.addresses["west"].admin_url, "http://127.0.0.1:1"))
    done = await run("switch", path, "--to", "west", "--yes")
    assert (done.code, "west (west at " in done.errors) == (2, True)
    done = await run("status", path)
    assert (done.code, "does not answer" in done.output) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["ways open", "fence", "settle", "promote", "move clients"])
async def test_switch_when_its_process_is_killed_then_the_same_command_goes_on(pair: CopyingPair, step: str) -> None:
    path = write_file(pair)
    await run("init", path, "--yes")
    await publish(pair, "east", 0)
    arguments = ("--to", "west", "--yes", "--progress", "json")
    process = await start("switch", path, *arguments)
    assert process.stdout is not None
    async for line in process.stdout:
        if json.loads(line)["step"] == step:
            process.send_signal(signal.SIGKILL)
            break
    assert await process.wait() == -signal.SIGKILL
    done = await run("switch", path, *arguments)
    assert done.code == 0, done
    roles = await pair.roles()
    assert (str(roles["west"]), roles["east"].role) == ("active;epoch=2", Role.MOVED)


async def test_operations_when_their_calls_are_recorded_then_change_roles_and_their_own_topic_alone(
    pair: CopyingPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def recorded(address: SiteAddress) -> AdminClient:
        admin = AdminClient(address.admin_url, timeout_ms=10_000)
        exchange = admin._http.exchange

        async def record(method: str, target: str, *arguments: Any) -> Any:
            calls.append(f"{method} {target}")
            return await exchange(method, target, *arguments)

        monkeypatch.setattr(admin._http, "exchange", record)
        return admin

    monkeypatch.setattr(SiteAddress, "admin", recorded)
    config = pair.config(drain_s=1)
    async with opened_pair(config) as opened:
        await initialise(opened)
    await publish(pair, "east", 0)
    async with opened_pair(replace(config, limits=pair.config().limits)) as opened:
        await switch(opened, "west", Shown())
    pair.held.add("west")
    await publish(pair, "west", 20)
    async with opened_pair(config) as opened:
        with pytest.raises(OperationFailed, match="drain was not reached"):
            await switch(opened, "east", Shown())
        with pytest.raises(OperationFailed, match="no unfinished switch"):
            await undo(opened, Shown())

    async def confirm(known: Known) -> bool:
        return True

    await take_over(config, "east", Shown(), confirm, even_if_alive=True)
    changes = {call for call in calls if not call.startswith("GET ")}
    assert {"POST /admin/v2/namespaces/public/default/failover"} < changes
    assert [call for call in changes if not any(re.fullmatch(allowed, call) for allowed in CHANGES_ALLOWED)] == []


async def test_takeover_when_a_site_is_lost_then_says_what_is_at_stake(pair: CopyingPair) -> None:
    limits = {"settle_s": 1, "probes": 2, "probe_s": 1}
    path = write_file(pair, limits=limits)
    await run("init", path, "--yes")
    await publish(pair, "east", 0)
    arguments = ("--to", "west", "--lost", "east")
    done = await run("takeover", path, *arguments)
    assert (done.code, "no terminal to confirm a takeover on: give --yes" in done.errors) == (2, True)
    done = await run("takeover", path, "--to", "west", "--lost", "west", "--yes")
    assert (done.code, "west is not the other site, which is east" in done.errors) == (2, True)
    done = await run("takeover", path, *arguments, "--yes", "-o", "json")
    assert (done.code, done.last["outcome"]) == (3, "REFUSED")
    assert "use switch --to west" in done.last["reason"]
    pair.held.update(pair.brokers)
    await asyncio.to_thread(pair.brokers["east"].suspend)
    try:
        done = await run("takeover", path, *arguments, "--yes")
    finally:
        await asyncio.to_thread(pair.brokers["east"].resume)
    assert done.code == 0, done
    lines = done.output.splitlines()
    assert lines[0] == "orders: takeover to west, epoch 2"
    assert re.match(r" 2 east lost +\d+\.\d s  2 probes failed", lines[2]), lines
    assert lines[3] == "At stake: not known, no report about east; interpulse failover watch makes them"
    assert [line.partition(":")[0] for line in lines[-4:]] == ["Last report", "Detected", "Confirmed", "Promoted"]
    assert lines[-4].endswith("not known")
    assert (await pair.roles())["west"].role is Role.ACTIVE
