"""The page about switching sites followed in order, between two clusters that copy without Spark."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Mapping
from pathlib import Path

import pytest

from interpulse.rules.failover_role import Role
from tests.guides.pages import HOWTO, blocks_of
from tests.integration.test_switch import publish
from tests.support.copying_pair import CopyingPair, copying_pair

WRITTEN = {
    "east": ("pulsar://127.0.0.1:6650", "http://127.0.0.1:8080"),
    "west": ("pulsar://127.0.0.1:6750", "http://127.0.0.1:8180"),
}
"""Addresses of the sites on the page."""


def with_addresses(text: str, pair: CopyingPair) -> str:
    for name, (service_url, admin_url) in WRITTEN.items():
        text = text.replace(service_url, pair.addresses[name].service_url)
        text = text.replace(admin_url, pair.addresses[name].admin_url)
    return text


async def typed(text: str, directory: Path, environment: Mapping[str, str]) -> str:
    """Run a block of the page. Return what it prints. Exit code 1 means warnings, such as of a full disk."""
    process = await asyncio.create_subprocess_exec(
        "sh", "-e", "-c", text, cwd=directory, env=environment, stdin=PIPE, stdout=PIPE, stderr=STDOUT
    )
    output = (await process.communicate())[0].decode()
    assert process.returncode in (0, 1), f"{text}\n{output}"
    return output


@pytest.mark.slow
async def test_page_when_followed_then_clients_are_moved_there_and_back(tmp_path: Path) -> None:
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = os.environ | {"PATH": os.pathsep.join(paths)}
    async with copying_pair(tmp_path) as pair:
        outputs = {}
        for block in blocks_of(HOWTO / "switch-sites.md"):
            if block.file_name is not None:
                (tmp_path / block.file_name).write_text(with_addresses(block.text, pair))
            elif block.language == "sh":
                outputs[block.heading] = await typed(block.text, tmp_path, environment)
                serving = [name for name, role in (await pair.roles()).items() if role.role is Role.ACTIVE]
                await publish(pair, serving[0], 0)
        roles = await pair.roles()
        assert (str(roles["east"]), roles["west"].role) == ("active;epoch=3", "moved")
        assert "orders: switch to west, epoch 2" in outputs["Switch"]
