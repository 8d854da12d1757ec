"""Writes ``src/interpulse/client/sync/admin_client.py``, the blocking admin client, from the asynchronous one.

Every public coroutine method of an area gets a blocking twin.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

from interpulse.client.admin.admin_client import AdminClient

MODULE = Path(__file__).resolve().parents[1] / "src" / "interpulse" / "client" / "sync" / "admin_client.py"

_HEAD = '''\
"""The admin client for programs without an event loop: the same names as in ``interpulse.client``, without ``await``.

Written by tools/generate_sync_admin.py from the asynchronous one; do not edit.
"""

from __future__ import annotations

{imports}
from interpulse.client.closing import Closes
from interpulse.client.credentials import Credentials
from interpulse.client.portal import Portal
from interpulse.client.sync.blocking import Blocking, blocking
from interpulse.client.tls import TlsOptions
from interpulse.model.operations import AdminRequest
'''
_CLIENT = '''

class AdminClient(Blocking[admin_client.AdminClient], Closes):
    """Administration of one cluster, for programs without an event loop.

    Use it as a context manager, or call :meth:`close`. Parameters and errors are those of
    ``interpulse.client.AdminClient``.
    """

    def __init__(
        self,
        web_url: str,
        *,
        credentials: Credentials | None = None,
        timeout_ms: int = 30_000,
        tls: TlsOptions | None = None,
    ) -> None:
        admin = admin_client.AdminClient(web_url, credentials=credentials, timeout_ms=timeout_ms, tls=tls)
        super().__init__(Portal(), admin)
        self.web_url = admin.web_url
{areas}
        self._closed = False

    def send(self, request: AdminRequest) -> None:
        """Send a planned request, such as one change of a replication plan."""
        self._portal.call(lambda: self._inner.send(request))

    def close(self) -> None:
        """Close the connections and the thread. Calling it again has no effect."""
        if self._closed:
            return
        self._closed = True
        try:
            self._portal.call(self._inner.close)
        finally:
            self._portal.close()
'''


def module_text() -> str:
    """Return the whole module."""
    areas = {name: type(part) for name, part in vars(AdminClient("http://localhost")).items() if _is_area(part)}
    classes: list[type] = [AdminClient, *areas.values()]
    modules = sorted(classes, key=lambda area: area.__module__)
    text = _HEAD.format(imports="\n".join(f"from interpulse.client.admin import {_import(area)}" for area in modules))
    for area in sorted(areas.values(), key=lambda area: area.__name__):
        text += f"\n\nclass {area.__name__}(Blocking[{_name(area)}]):\n"
        text += f"{_docstring(area)}\n\n" + "\n".join(_twins(area)) + "\n"
    lines = "\n".join(
        f"        self.{name} = {area.__name__}(self._portal, admin.{name})" for name, area in areas.items()
    )
    return text + _CLIENT.format(areas=lines)


def _docstring(area: type) -> str:
    text = inspect.cleandoc(area.__doc__ or "")
    return indent(f'"""{text}"""' if "\n" not in text else f'"""{text}\n"""', "    ")


def _is_area(part: object) -> bool:
    return type(part).__name__.endswith("Admin")


def _import(area: type) -> str:
    module = area.__module__.rpartition(".")[2]
    return module if area is AdminClient else f"{module} as admin_{module}"


def _name(area: type) -> str:
    return f"{_import(area).rpartition(' ')[2]}.{area.__name__}"


def _twins(area: type) -> Iterator[str]:
    for name, method in vars(area).items():
        if inspect.iscoroutinefunction(method) and not name.startswith("_"):
            yield f"    {name} = blocking({_name(area)}.{name})"


if __name__ == "__main__":
    MODULE.write_text(module_text())
