"""What errors say, read from the source: each message with … for what varies."""

import ast
import re
from collections.abc import Collection, Iterator

__all__ = ["explained", "template", "templates"]


def templates(tree: ast.Module, makers: Collection[str]) -> Iterator[str]:
    """Of everything in a module that calls one of the ``makers``; not of what only passes another error's text on."""
    for text in _messages(tree, makers):
        found = " ".join(template(text).split())
        if re.search(r"\w", found):
            yield found


def template(text: ast.expr) -> str:
    """The message with … for what varies; empty if it is another error's text."""
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    words = [part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "…" for part in parts]
    return re.sub("…+", "…", "".join(words)).strip()


def explained(section: str) -> set[str]:
    """The messages in the first column of the tables of a page."""
    cells = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    return {message for cell in cells for message in re.findall(r"`([^`]+)`", cell)}


def _messages(tree: ast.Module, makers: Collection[str]) -> Iterator[ast.expr]:
    """The first argument of everything that makes an error, followed to where it is written."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for owner in ast.walk(tree):
        if not isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for call in ast.walk(owner):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args and call.func.id in makers:
                yield from _written(call.args[0], owner, functions)


def _written(
    text: ast.expr, owner: ast.FunctionDef | ast.AsyncFunctionDef, functions: dict[str, ast.FunctionDef]
) -> Iterator[ast.expr]:
    if isinstance(text, ast.Name):
        for node in ast.walk(owner):
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == text.id for t in node.targets):
                yield node.value
    elif isinstance(text, ast.Call) and isinstance(text.func, ast.Name) and text.func.id in functions:
        for node in ast.walk(functions[text.func.id]):
            if isinstance(node, ast.Return) and node.value is not None:
                yield node.value
    else:
        yield text
