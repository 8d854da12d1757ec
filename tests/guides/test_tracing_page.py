"""The page on tracing: its program is run as it stands, but for the address."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from interpulse.testing.broker import InProcessBroker
from tests.guides.pages import HOWTO, blocks_of

PAGE = HOWTO / "trace-messages.md"
BLOCKS = blocks_of(PAGE)


def relations(printed: str) -> list[tuple[str, str | None]]:
    """The names of spans, and that of what each is a child of."""
    rows = re.findall(r"^(.+): ([0-9a-f]+), child of (\w+)$", printed, re.MULTILINE)
    names = {span_id: name for name, span_id, _ in rows}
    return [(name, names.get(parent)) for name, _, parent in rows]


def test_program_when_run_from_the_page_then_prints_what_the_page_shows(
    pulsar_broker: InProcessBroker, tmp_path: Path
) -> None:
    (program,) = [block for block in BLOCKS if block.file_name == "traced.py"]
    (said,) = [block.text for block in BLOCKS if block.language == "text"]
    here = tmp_path / "traced.py"
    here.write_text(program.text.replace("pulsar://localhost:6650", pulsar_broker.service_url))
    done = subprocess.run([sys.executable, here], capture_output=True, text=True, check=True, timeout=60)
    assert sorted(relations(done.stdout)) == sorted(relations(said))
    assert len(relations(said)) == 4
