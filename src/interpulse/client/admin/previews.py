"""Previews: the broker returns the changes that a request would make, and makes none.

Apache Pulsar and earlier releases of Interpulse ignore the query parameter and make the changes. Therefore a preview
checks the broker's version first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from interpulse import __version__
from interpulse.client.json_readers import ignored, records, string
from interpulse.client.transport.http_errors import Kind
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.errors import NotSupported

Changes = list[dict[str, Any]]


async def make_change(
    http: HttpSession,
    method: str,
    path: str,
    body: object = None,
    *,
    kind: Kind,
    query: Mapping[str, object] | None = None,
    previewed: bool,
) -> Changes | None:
    """Make a change and return None, or return the changes of a preview.

    Raise NotSupported if the broker has no previews.
    """
    if not previewed:
        await http.request(method, path, kind=kind, read=ignored, query=query, body=body)
        return None
    version = await http.get("/admin/v2/brokers/version", kind="broker", read=string)
    if _release(version.partition("+interpulse-")[2]) < _release(__version__):
        raise NotSupported(f"The broker, version {version}, offers no previews; use Interpulse {__version__} or later")
    return await http.request(
        method, path, kind=kind, read=records, query={**(query or {}), "preview": True}, body=body
    )


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers of a release, empty unless the broker is Interpulse."""
    return tuple(map(int, re.findall(r"\d+", version)[:3]))
