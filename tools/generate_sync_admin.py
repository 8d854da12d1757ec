"""Writes ``src/interpulse/client/sync/admin_client.py``, the blocking admin client, from the asynchronous one.

Every public method gets a twin with the same parameters and docstring that waits for its result in a portal.
"""

from __future__ import annotations

import ast
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

CLIENT = Path(__file__).resolve().parents[1] / "src" / "interpulse" / "client"
ROOM = CLIENT / "admin"
MODULE = CLIENT / "sync" / "admin_client.py"

_HEAD = '''\
"""The admin client for programs without an event loop: the same names as in ``interpulse.client``, without ``await``.

Written by tools/generate_sync_admin.py from the asynchronous one; do not edit.
"""

from __future__ import annotations

from interpulse.client.closing import Closes
from interpulse.client.portal import Portal
'''


def module_text() -> str:
    """The whole module."""
    client = _tree("admin_client")
    homes = {
        alias.name: (statement.module or "").rpartition(".")[2]
        for statement in client.body
        if isinstance(statement, ast.ImportFrom)
        and statement.module
        and statement.module.startswith("interpulse.client.admin.")
        for alias in statement.names
    }
    trees = {home: _tree(home) for home in dict.fromkeys(homes.values())} | {"admin_client": client}
    (own,) = (each for each in client.body if isinstance(each, ast.ClassDef))
    classes = [_area(_class(trees[home], name), home) for name, home in homes.items()] + [_client(own)]
    used = {name for each in classes for name in _names_in_signatures(each)}
    pieces = [
        _HEAD,
        f"from interpulse.client.admin import {', '.join(f'{home} as {_alias(home)}' for home in trees)}",
        *_imports(trees, used - homes.keys()),
        *_copied_assignments(trees, used),
        *(ast.unparse(each) for each in classes),
    ]
    return _formatted("\n\n".join(pieces))


def _imports(trees: dict[str, ast.Module], used: set[str]) -> Iterator[str]:
    """What the modules import, and the classes of theirs that signatures use."""
    for home, tree in trees.items():
        for each in tree.body:
            if isinstance(each, ast.ImportFrom) and each.module != "__future__":
                names = [alias.name for alias in each.names if not alias.name.endswith("Admin")]
                yield f"from {each.module} import {', '.join(names)}" if names else ""
            elif isinstance(each, ast.ClassDef) and each.name in used:
                yield f"from interpulse.client.admin.{home} import {each.name}"


def _alias(home: str) -> str:
    """The name of a module in the twin, where parameters have names such as ``topics``."""
    return home if home.startswith("admin_") else f"admin_{home}"


def _tree(module: str) -> ast.Module:
    return ast.parse((ROOM / f"{module}.py").read_text())


def _class(tree: ast.Module, name: str) -> ast.ClassDef:
    (found,) = (each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == name)
    return found


def _area(source: ast.ClassDef, home: str) -> ast.ClassDef:
    """The twin of one part of the admin client."""
    constructor = _parsed(
        f"def __init__(self, portal: Portal, area: {_alias(home)}.{source.name}) -> None:\n"
        "    self._portal = portal\n    self._area = area"
    )
    return _twin(source, [], constructor, "self._area")


def _client(source: ast.ClassDef) -> ast.ClassDef:
    """The twin of the admin client, with the same parts and its own portal."""
    (made,) = (each for each in source.body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
    options = ", ".join(f"{kwonlyarg.arg}={kwonlyarg.arg}" for kwonlyarg in made.args.kwonlyargs)
    parts = [
        f"self.{part} = {area}(self._portal, self._admin.{part})"
        for part, area in _assigned_calls(made)
        if area.endswith("Admin")
    ]
    lines = ["self._portal = Portal()", f"self._admin = {_alias('admin_client')}.AdminClient(web_url, {options})"]
    lines += ["self.web_url = self._admin.web_url", *parts]
    constructor = _parsed(f"def __init__({ast.unparse(made.args)}) -> None:\n    " + "\n    ".join(lines))
    close = _parsed(
        "def close(self) -> None:\n"
        '    """Close the connections and the thread. Calling it again has no effect."""\n'
        "    if self._closed:\n        return\n"
        "    self._closed = True\n"
        "    try:\n        self._portal.call(self._admin.close)\n    finally:\n        self._portal.close()"
    )
    constructor.body.append(_statement("self._closed = False"))
    twin = _twin(source, [ast.Name("Closes")], constructor, "self._admin")
    twin.body = [each for each in twin.body if not (isinstance(each, ast.FunctionDef) and each.name == "close")]
    twin.body[0] = _statement(
        repr(
            "Administration of one cluster, for programs without an event loop.\n\n"
            "    Use it as a context manager, or call :meth:`close`. Parameters and errors are those of\n"
            "    ``interpulse.client.AdminClient``."
        )
    )
    twin.body.append(close)
    return twin


def _assigned_calls(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    for statement in function.body:
        match statement:
            case ast.Assign(targets=[ast.Attribute(attr=attribute)], value=ast.Call(func=ast.Name(id=called))):
                yield attribute, called


def _twin(source: ast.ClassDef, bases: list[ast.expr], constructor: ast.FunctionDef, inner: str) -> ast.ClassDef:
    methods = [_blocking(each, inner) for each in source.body if isinstance(each, ast.AsyncFunctionDef)]
    docstring = [each for each in source.body[:1] if isinstance(each, ast.Expr)]
    body = [*docstring, constructor, *(method for method in methods if not method.name.startswith("_"))]
    return ast.ClassDef(source.name, bases, [], body, [])


def _blocking(source: ast.AsyncFunctionDef, inner: str) -> ast.FunctionDef:
    arguments = source.args
    passed = [posonlyarg.arg for posonlyarg in arguments.posonlyargs + arguments.args if posonlyarg.arg != "self"]
    passed += [f"{kwonlyarg.arg}={kwonlyarg.arg}" for kwonlyarg in arguments.kwonlyargs]
    call = f"self._portal.call(lambda: {inner}.{source.name}({', '.join(passed)}))"
    docstring = source.body[:1] if ast.get_docstring(source) is not None else []
    body = [*docstring, _statement(f"return {call}")]
    twin = ast.FunctionDef(source.name, arguments, body, [], source.returns)
    return ast.fix_missing_locations(twin)


def _copied_assignments(trees: dict[str, ast.Module], used: set[str]) -> list[str]:
    """The names that signatures use and their modules assign, such as aliases of types."""
    found: dict[str, str] = {}
    for tree in trees.values():
        for statement in tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) if name in used:
                    text = ast.unparse(statement)
                    assert found.setdefault(name, text) == text, f"{name} is not the same in every module"
    return list(found.values())


def _names_in_signatures(source: ast.ClassDef) -> Iterator[str]:
    for method in source.body:
        if isinstance(method, ast.FunctionDef):
            parts: list[ast.AST] = [method.args] + ([method.returns] if method.returns else [])
            yield from (node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name))


def _parsed(text: str) -> ast.FunctionDef:
    statement = _statement(text)
    assert isinstance(statement, ast.FunctionDef)
    return statement


def _statement(text: str) -> ast.stmt:
    (statement,) = ast.parse(text).body
    return statement


def _formatted(text: str) -> str:
    """Without imports that nothing uses, and as `make fmt` would leave it."""
    ruff = Path(sysconfig.get_path("scripts")) / "ruff"
    name = f"--stdin-filename={MODULE}"
    for arguments in (["check", "--quiet", "--fix-only", name, "-"], ["format", "--quiet", name, "-"]):
        text = subprocess.run([ruff, *arguments], input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    MODULE.write_text(module_text())
