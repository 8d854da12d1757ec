"""Bodies of the admin API as official clients write them, and their calls played to a broker.

``sent.jsonl`` holds what the setters of pulsaradmin (Go 0.19.0) and of Java's admin client (5.0.0-M1) sent to a server
that noted it, with a value for every field, and what the Terraform provider makes of Go's structs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.rest_client import Reply, call

__all__ = ["SentBody", "played", "sent_bodies"]

_TABLE = Path(__file__).with_name("sent.jsonl")
_MADE = (
    ("PUT", "tenants/made", {"adminRoles": [], "allowedClusters": ["standalone"]}),
    ("PUT", "clusters/made", {"serviceUrl": "http://127.0.0.1:1", "brokerServiceUrl": "pulsar://127.0.0.1:1"}),
    ("PUT", "namespaces/public/made", None),
    ("PUT", "persistent/public/made/t", None),
    ("PUT", "persistent/public/made/t/subscription/sub", None),
)
"""What the calls are about; what they create themselves is called ``new-...``."""


class SentBody(NamedTuple):
    """One call of one client."""

    client: str
    method: str
    path: str
    body: Any


def sent_bodies() -> list[SentBody]:
    """Return all of them."""
    return [SentBody(**json.loads(line)) for line in _TABLE.read_text(encoding="utf-8").splitlines()]


async def played(web_url: str) -> list[tuple[SentBody, Reply]]:
    """Make every call, in order, to a fresh cluster ``standalone``."""
    for method, path, body in _MADE:
        assert (await call(web_url, method, path, body)).status < 300, path
    return [(sent, await call(web_url, sent.method, sent.path, sent.body)) for sent in sent_bodies()]
