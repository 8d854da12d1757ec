"""References of the code to the pages that state a rule: "Source: docs/reference/cluster-protocol.md#fencing"."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.house.sources import ROOT, tracked_files

PAGE = re.compile(r"(docs/[\w/-]+\.md)#([\w-]+)")
SOURCE = re.compile(r"Source:\s+([^\s,]+(?:,\s+(?:docs/|PIP-)[^\s,]+)*)")
MODEL = re.compile(r"Model:\s+(docs/models/\w+\.tla)")
PROPOSAL = re.compile(r"PIP-\d+")
# What a reader of this repository cannot look up.
SPECIFICATIONS = "cluster|wire|topic-lifecycle|spark-pipeline|clients|conventions"
ELSEWHERE = re.compile(rf"\b(?:{SPECIFICATIONS})(?:\.md)? \d+\.\d+", re.IGNORECASE)
TEXTS = (tokenize.COMMENT, tokenize.STRING)


def test_sources_when_followed_then_exist() -> None:
    dead = [f"{path}: {cited}" for path, cited in _references() if not _is_resolved(cited)]
    assert not dead


def test_sources_when_written_then_name_pages_of_the_repository() -> None:
    assert not [f"{path}: {text}" for path, text in _texts(ELSEWHERE) for text in ELSEWHERE.findall(text)]


def test_models_when_named_by_the_code_then_exist_and_name_the_module() -> None:
    named = {(path, model) for path, text in _texts(MODEL) for model in MODEL.findall(text)}
    assert named
    for path, model in named:
        module = path.relative_to(ROOT / "src/interpulse")
        assert str(module) in (ROOT / model).read_text()


def test_headings_when_made_anchors_then_follow_the_rule_of_git_hosts() -> None:
    assert _anchors("# The life of a topic\n\n## Locks, and `why`\n") == {"the-life-of-a-topic", "locks-and-why"}


def _references() -> Iterator[tuple[Path, str]]:
    """Yield each reference behind "Source:", up to the end of its list."""
    for path, text in _texts(SOURCE):
        for cited in SOURCE.findall(text):
            for reference in cited.split(","):
                yield path.relative_to(ROOT), reference.strip().rstrip('."')


def _texts(pattern: re.Pattern[str]) -> Iterator[tuple[Path, str]]:
    """Yield the comments and texts of every module in which the pattern occurs, and whole files of Rust."""
    for path in tracked_files():
        if path.suffix == ".rs":
            yield path, path.read_text()
        elif path.suffix == ".py" and path != Path(__file__) and "_pb2" not in path.name:
            source = path.read_text()
            if not pattern.search(source):
                continue
            tokens = tokenize.generate_tokens(io.StringIO(source).readline)
            yield from ((path, token.string) for token in tokens if token.type in TEXTS)


def _is_resolved(cited: str) -> bool:
    if PROPOSAL.fullmatch(cited):
        return True
    page = PAGE.fullmatch(cited)
    return page is not None and (ROOT / page[1]).is_file() and page[2] in _anchors((ROOT / page[1]).read_text())


def _anchors(page: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
