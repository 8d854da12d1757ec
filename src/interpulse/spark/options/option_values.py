"""How values of options are written: each function reads one kind, or raises a ValueError that says what it takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from interpulse.client.config import ServiceUrl
from interpulse.client.transport.http_session import parse_web_urls
from interpulse.model.names import NamespaceName, TopicName

__all__ = [
    "one_of",
    "parse_assignment",
    "parse_creation",
    "parse_duration_ms",
    "parse_flag",
    "parse_hashing_scheme",
    "parse_names",
    "parse_namespaces",
    "parse_pattern",
    "parse_positive",
    "parse_positive_duration_ms",
    "parse_positive_size",
    "parse_routing_mode",
    "parse_service_url",
    "parse_size",
    "parse_topic",
    "parse_topics",
    "parse_waiting",
    "parse_web_url",
    "parse_whole",
]


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


def parse_flag(text: str) -> bool:
    """``true`` or ``false``."""
    if text.strip().lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.strip().lower() == "true"


def one_of(*allowed: str) -> Callable[[str], str]:
    """What reads one of these words, in any letter case."""

    def read(text: str) -> str:
        if text.strip().lower() not in allowed:
            raise ValueError(f"{text!r} is not one of {', '.join(allowed)}")
        return text.strip().lower()

    return read


def parse_positive(text: str) -> int:
    """An integer above 0."""
    if not text.strip().isdigit() or int(text) == 0:
        raise ValueError(f"{text!r} is not a positive integer")
    return int(text)


def parse_whole(text: str) -> int:
    """An integer, 0 included."""
    if not text.strip().isdigit():
        raise ValueError(f"{text!r} is not an integer")
    return int(text)


def parse_creation(text: str) -> str | int:
    """``auto``, ``false``, or how many partitions a topic is created with."""
    word = text.strip().lower()
    if word in ("auto", "false"):
        return word
    if not word.isdigit():
        raise ValueError(f"{text!r} is neither auto nor false nor a number of partitions")
    return int(word)


def parse_routing_mode(text: str) -> str:
    """The names of Pulsar's Java client."""
    word = text.strip().lower()
    if word == "custompartition":
        raise ValueError("CustomPartition: say in the column __partition where each row goes")
    return {"roundrobinpartition": "round-robin", "singlepartition": "single"}[
        one_of("roundrobinpartition", "singlepartition")(word)
    ]


def parse_hashing_scheme(text: str) -> str:
    """The names of Pulsar's Java client."""
    schemes = {"javastringhash": "java-string", "murmur3_32hash": "murmur3"}
    return schemes[one_of(*schemes)(text)]


def parse_waiting(text: str) -> bool:
    """``true``: what else should become of rows?"""
    if not parse_flag(text):
        raise ValueError("false would lose rows; leave it out, rows wait while maxPendingBytes are in flight")
    return True


def parse_positive_size(text: str) -> int:
    """A size above 0: bytes."""
    size = parse_size(text)
    if size == 0:
        raise ValueError("must be above 0")
    return size


def parse_positive_duration_ms(text: str) -> int:
    """A duration above 0: milliseconds."""
    duration = parse_duration_ms(text)
    if duration <= 0:
        raise ValueError("must be above 0")
    return duration


def parse_service_url(text: str) -> str:
    """``pulsar://host:6650`` or ``pulsar+ssl://...``."""
    if not re.match(r"pulsar(\+ssl)?://[^/\s]+/?$", text.strip()):
        raise ValueError(f"{text!r} does not look like pulsar://host:6650")
    return ServiceUrl.parse(text).text


def parse_web_url(text: str) -> str:
    """``http://host:8080`` or ``https://...``, without a slash at the end."""
    if not re.match(r"https?://[^/\s]+/?$", text.strip()):
        raise ValueError(f"{text!r} does not look like http://host:8080")
    parse_web_urls(text.strip())
    return text.strip().rstrip("/")


def parse_topic(text: str) -> str:
    """The full name of a topic; short ones are in ``persistent://public/default``."""
    return str(TopicName.parse(text.strip()))


def parse_topics(text: str) -> tuple[str, ...]:
    """One topic or more, between commas."""
    names = tuple(str(TopicName.parse(name.strip())) for name in text.split(",") if name.strip())
    if not names:
        raise ValueError("names no topic")
    return names


def parse_assignment(text: str) -> tuple[str, ...]:
    """The partitions of ``{"topic": [0, 1]}``, by their names."""
    try:
        body = json.loads(text)
        names = [str(TopicName.parse(name).partition(index)) for name, indexes in body.items() for index in indexes]
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f'{text!r} is not JSON such as {{"topic": [0, 1]}}: {error}') from None
    if not names:
        raise ValueError("names no partition")
    return tuple(names)


def parse_pattern(text: str) -> str:
    """The text of a regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    return text


def parse_namespaces(text: str) -> tuple[NamespaceName, ...]:
    """Each ``tenant/namespace``, between commas."""
    found = tuple(NamespaceName.parse(name) for name in parse_names(text))
    if not found:
        raise ValueError("names no namespace")
    return found


def parse_names(text: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
