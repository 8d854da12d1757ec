"""The project's own files, parsed: what the house rules are checked on."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = "_pb2"


@cache
def tracked_files() -> tuple[Path, ...]:
    """Every file of the repository that git knows; where there is no git, every file outside hidden directories."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        found = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        found = [p for p in ROOT.rglob("*") if not any(part.startswith(".") for part in p.relative_to(ROOT).parts)]
    return tuple(path for path in found if path.is_file())


@cache
def modules() -> dict[str, ast.Module]:
    """The syntax tree of every module below src by its dotted name, without generated ones."""
    source = ROOT / "src"
    trees = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if GENERATED not in name:
            trees[name] = ast.parse(path.read_text(), filename=str(path))
    return trees


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def public_definitions(tree: ast.Module) -> Iterator[tuple[str, Definition]]:
    """Classes and functions of a module, and methods of its classes, whose names have no leading underscore."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                yield from _public_methods(node)


def _public_methods(owner: ast.ClassDef) -> Iterator[tuple[str, Definition]]:
    for node in owner.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield f"{owner.name}.{node.name}", node
