"""Small tools around the official client, shared by the tests that use it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pulsar

RECEIVE_MS = 150_000
"""Once its broker has been away for a while, the client waits up to a minute before it asks for it again."""
QUIET_MS = 300
"""How long nothing must come before we believe that nothing comes."""


@contextmanager
def connected(service_url: str, log_file: Path | None = None) -> Iterator[pulsar.Client]:
    """An official client; its own log is kept away from the output of the tests."""
    logger = pulsar.FileLogger(pulsar.LoggerLevel.Warn, str(log_file)) if log_file else _quiet_logger()
    client = pulsar.Client(service_url, logger=logger, operation_timeout_seconds=60)
    try:
        yield client
    finally:
        client.close()


def receive(consumer: pulsar.Consumer, count: int) -> list[pulsar.Message]:
    """``count`` messages, not acknowledged."""
    return [consumer.receive(RECEIVE_MS) for _ in range(count)]


def receive_all(consumer: pulsar.Consumer, count: int) -> list[pulsar.Message]:
    """Everything that comes until it is quiet, acknowledged; ``count`` messages at least are waited for."""
    messages: list[pulsar.Message] = []
    while True:
        try:
            message = consumer.receive(RECEIVE_MS if len(messages) < count else QUIET_MS)
        except pulsar.Timeout:
            return messages
        messages.append(message)
        consumer.acknowledge(message)


def is_quiet(consumer: pulsar.Consumer) -> bool:
    """Whether nothing comes."""
    try:
        consumer.receive(QUIET_MS)
    except pulsar.Timeout:
        return True
    return False


def admin(web_url: str, method: str, path: str, body: Any = None) -> Any:
    """One call of the admin API, made again where it is sent to; the JSON of the answer, None if it is empty."""
    content = None if body is None else json.dumps(body).encode()
    return _admin(f"{web_url}/admin/v2/{path}", method, path, content)


def _admin(url: str, method: str, path: str, content: bytes | None, *, redirects_max: int = 10) -> Any:
    request = urllib.request.Request(url, content, method=method)
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            raw = answer.read()
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.TEMPORARY_REDIRECT and redirects_max:
            return _admin(error.headers["Location"], method, path, content, redirects_max=redirects_max - 1)
        raise AssertionError(f"{method} {path}: {error.code} {error.read()!r}") from error
    return json.loads(raw) if raw else None


def _quiet_logger() -> Any:
    import logging

    logger = logging.getLogger("official-client")
    logger.setLevel(logging.CRITICAL)
    return logger
