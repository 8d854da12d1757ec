"""Commands for a shell that remedies and runbooks print. They hold no credentials."""

from __future__ import annotations

import json
import shlex


def admin_command(admin_url: str, arguments: str, *names: object) -> str:
    """Return a command for one site; ``names`` are quoted and follow the arguments."""
    quoted = " ".join(shlex.quote(str(name)) for name in names)
    return f"interpulse-admin --admin-url {shlex.quote(admin_url)} {arguments} {quoted}".rstrip()


def http_command(admin_url: str, method: str, path: str, body: object = None) -> str:
    """Return a call of the admin API of one site as a command of curl."""
    content = f" -H 'Content-Type: application/json' -d {shlex.quote(json.dumps(body))}" if body is not None else ""
    verb = "" if method == "GET" else f" -X {method}"
    return f"curl -sf{verb} {shlex.quote(admin_url.rstrip('/') + path)}{content}"
