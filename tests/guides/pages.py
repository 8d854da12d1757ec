"""The code blocks of README and guides, as their readers see them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial" / "first-steps.md"
HOWTO = ROOT / "docs" / "howto"
_FILE_NAME = re.compile(r"^(?:#|//) ([\w.-]+\.\w+)$")


@dataclass(frozen=True)
class Block:
    """One fenced block: where it stands, under which heading, in which language."""

    page: str
    line: int
    heading: str
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file_name(self) -> str | None:
        """A block is a file of its own if its first line names one in a comment; the reader saves it."""
        found = _FILE_NAME.match(self.text.partition("\n")[0])
        return found[1] if found else None


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    found, heading = [], ""
    tokens = MarkdownIt().parse(page.read_text())
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = tokens[index + 1].content
        elif token.type == "fence":
            assert token.map is not None
            name = str(page.relative_to(ROOT))
            found.append(Block(name, token.map[0] + 1, heading, token.info.strip(), token.content))
    return found


def guides() -> list[Path]:
    """Return README, the tutorial, and every page of docs/howto."""
    return [README, TUTORIAL, *sorted(HOWTO.glob("*.md"))]
