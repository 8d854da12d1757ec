"""Readers of values in configuration files and options. Each raises ValueError with the value and the expected form."""

from __future__ import annotations

import re

from interpulse.client.config import ServiceUrl


def parse_duration_ms(text: str) -> int:
    """Read ``500`` or ``500ms``, ``30s``, ``15m``, ``1h``: milliseconds."""
    match = re.fullmatch(r"\s*(-?[0-9]+)\s*(ms|s|m|h)?\s*", text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration such as 500, 500ms, 30s, 15m")
    return int(match[1]) * {"ms": 1, None: 1, "s": 1000, "m": 60_000, "h": 3_600_000}[match[2]]


def parse_size(text: str) -> int:
    """Read ``65536``, ``64k``, ``64m``, ``1g``: bytes."""
    match = re.fullmatch(r"\s*([0-9]+)\s*([kmg]?)b?\s*", text.lower())
    if match is None:
        raise ValueError(f"{text!r} is not a size such as 65536, 64k, 64m, 1g")
    return int(match[1]) * {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}[match[2]]


def parse_service_url(text: str) -> str:
    """Read ``pulsar://host:6650`` or ``pulsar+ssl://...``."""
    if not re.match(r"pulsar(\+ssl)?://[^/\s]+/?$", text.strip()):
        raise ValueError(f"{text!r} does not look like pulsar://host:6650")
    return ServiceUrl.parse(text).text


def parse_pattern(text: str) -> str:
    """Read a regular expression. Return its text."""
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    return text
