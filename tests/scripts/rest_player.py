"""Plays REST conversations: each line is a call and the status it must get.

::

    # a comment
    204     PUT persistent/{tenant}/a/t {"k":"v"}
    200     GET persistent/{tenant}/a/t/properties => {"k":"v"}
    501/200 GET persistent/{tenant}/a/t/permissions

Paths are below ``/admin/v2/`` unless they begin with a slash. Two statuses are ours and real Pulsar's, where we differ
on purpose. After ``=>`` stands the exact JSON answer of both. ``{tenant}``, ``{cluster}`` and ``{remote}`` are filled
in, so that a conversation can be held with a broker that other tests use too.
"""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["CONVERSATIONS", "Step", "play", "read_conversation"]

CONVERSATIONS = sorted(Path(__file__).with_name("rest").glob("*.txt"))

_STEP = re.compile(r"(\d{3})(?:/(\d{3}))?\s+([A-Z]+) (\S+)(?: (?!=> )(.*?))?(?: => (.*))?")


@dataclass(frozen=True)
class Step:
    """One call and what must come back."""

    line: int
    ours: int
    real: int
    method: str
    path: str
    body: str | None
    answer: str | None


def read_conversation(path: Path, values: Mapping[str, str]) -> list[Step]:
    """The steps of one file, with the values filled in."""
    text = path.read_text()
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    steps = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        match = _STEP.fullmatch(line)
        assert match is not None, f"line {number} is no step: {line}"
        ours, real, method, target, body, answer = match.groups()
        target = target if target.startswith("/") else f"/admin/v2/{target}"
        steps.append(Step(number, int(ours), int(real or ours), method, target, body, answer))
    return steps


def play(web_url: str, steps: list[Step], *, real: bool) -> list[str]:
    """Make the calls one after the other; what came back wrong, a line each."""
    return [wrong for step in steps if (wrong := _play_step(web_url, step, step.real if real else step.ours))]


def _play_step(web_url: str, step: Step, expected: int) -> str | None:
    """On a connection of its own: a real Pulsar now and then closes one between two calls."""
    address = urlsplit(web_url)
    assert address.hostname is not None
    headers = {"Content-Type": "application/json"} if step.body is not None else {}
    with closing(http.client.HTTPConnection(address.hostname, address.port, timeout=30)) as connection:
        connection.request(step.method, step.path, body=step.body, headers=headers)
        answer = connection.getresponse()
        body = answer.read().decode()
    if answer.status != expected:
        return f"line {step.line}: {step.method} {step.path}: {answer.status} instead of {expected}: {body[:200]}"
    if step.answer is not None and json.loads(body) != json.loads(step.answer):
        return f"line {step.line}: {step.method} {step.path}: {body} instead of {step.answer}"
    return None
