"""The page on encryption: its commands and its program are run as they stand, but for addresses and installing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from interpulse.testing.broker import InProcessBroker
from tests.guides.pages import HOWTO, Block, blocks_of

BLOCKS = blocks_of(HOWTO / "encrypt-messages.md")
BEFORE = ("pip install", "interpulse standalone")
"""What the reader has done already."""


def typed(block: Block) -> bool:
    return block.language == "sh" and not block.text.startswith(BEFORE)


def test_page_when_followed_then_holders_of_the_key_read_the_messages(
    pulsar_broker: InProcessBroker, tmp_path: Path
) -> None:
    (program,) = [block for block in BLOCKS if block.file_name == "encrypted.py"]
    (said,) = [block.text for block in BLOCKS if block.language == "text"]
    here = program.text.replace("pulsar://localhost:6650", pulsar_broker.service_url)
    (tmp_path / "encrypted.py").write_text(here)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "brokerServiceUrl": pulsar_broker.service_url,
        "webServiceUrl": pulsar_broker.web_url,
    }
    printed = []
    for block in filter(typed, BLOCKS):
        done = subprocess.run(
            ["bash", "-e", "-c", block.text],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, f"{block.place}: {done.stderr}"
        printed.append(done.stdout)
    keys, consumed, sealed, ran, demanded = printed
    assert (keys, demanded) == ("", "")
    assert "content:4711 for one book" in consumed
    assert "4711" not in sealed
    assert "got message" in sealed
    assert ran == said
    assert (tmp_path / "orders.private.pem").stat().st_mode & 0o777 == 0o600
