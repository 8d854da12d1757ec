"""Plays REST conversations: each line is a call and the status it must get.

::

    # a comment
    204     PUT persistent/{tenant}/a/t {"k":"v"}
    200     GET persistent/{tenant}/a/t/properties => {"k":"v"}
    501/200 GET brokers/internal-configuration

Paths are below ``/admin/v2/`` unless they begin with a slash. Two statuses are ours and real Pulsar's, where we differ
on purpose. After ``=>`` stands the exact JSON answer of both. ``{tenant}``, ``{cluster}`` and ``{remote}`` are filled
in, so that a conversation can be held with a broker that other tests use too.
"""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.waiting import SECONDS_MAX, until

CONVERSATIONS = sorted(Path(__file__).with_name("rest").glob("*.txt"))

_CHANGE = re.compile(r"/admin/v2/brokers/configuration/(\w+)/(\w+)")
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
    wrong = []
    for step in steps:
        problem = _play_step_on_real(web_url, step) if real else _play_step(web_url, step, step.ours)
        if problem:
            wrong.append(problem)
        elif real and step.ours == 204 and step.method == "POST" and (change := _CHANGE.fullmatch(step.path)):
            _wait_until_in_force(web_url, *change.groups())
    return wrong


def _wait_until_in_force(web_url: str, key: str, value: str) -> None:
    """A real Pulsar answers a change of its configuration before the change counts."""

    def in_force() -> bool:
        runtime = json.loads(_call(web_url, "GET", "/admin/v2/brokers/configuration/runtime")[1])
        highest = runtime["maxNumPartitionsPerPartitionedTopic"]  # where the default number ends
        return runtime[key] == value or (key == "defaultNumPartitions" and runtime[key] == highest)

    until(in_force)


def _play_step_on_real(web_url: str, step: Step) -> str | None:
    """A question is asked again until the answer is right, for some changes count only after a moment; a change is
    made again while it is answered with 5xx, as may be while a bundle is on its way."""
    deadline = time.monotonic() + SECONDS_MAX
    while problem := _play_step(web_url, step, step.real):
        passing = step.method == "GET" or re.search(r": 5\d\d instead of ", problem)
        if not passing or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    return problem


def _play_step(web_url: str, step: Step, expected: int) -> str | None:
    status, body = _call(web_url, step.method, step.path, step.body)
    if status != expected:
        return f"line {step.line}: {step.method} {step.path}: {status} instead of {expected}: {body[:200]}"
    if step.answer is not None and _unordered(json.loads(body)) != _unordered(json.loads(step.answer)):
        return f"line {step.line}: {step.method} {step.path}: {body} instead of {step.answer}"
    return None


def _call(web_url: str, method: str, path: str, body: str | None = None) -> tuple[int, str]:
    """On a connection of its own: a real Pulsar now and then closes one between two calls."""
    address = urlsplit(web_url)
    assert address.hostname is not None
    headers = {"Content-Type": "application/json"} if body is not None else {}
    with closing(http.client.HTTPConnection(address.hostname, address.port, timeout=30)) as connection:
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def _unordered(value: Any) -> Any:
    """Clusters, roles and the like are sets in Java, which come in any order."""
    if isinstance(value, dict):
        return {key: _unordered(item) for key, item in value.items()}
    if isinstance(value, list):
        items = [_unordered(item) for item in value]
        return sorted(items) if all(isinstance(item, str) for item in items) else items
    return value
