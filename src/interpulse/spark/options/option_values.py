"""Readers of option values, one per kind, and the fields of common kinds.

Each reader raises ValueError with the value and the expected form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

from interpulse.client.transport.web_urls import parse_web_urls
from interpulse.model.extras import pip_install
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.setting_values import parse_duration_ms, parse_size
from interpulse.spark.options.option import option


def parse_flag(text: str) -> bool:
    """Read ``true`` or ``false``."""
    if text.strip().lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.strip().lower() == "true"


def one_of(*allowed: str) -> Callable[[str], str]:
    """Return a reader of one of these words, in any letter case."""

    def read(text: str) -> str:
        if text.strip().lower() not in allowed:
            raise ValueError(f"{text!r} is not one of {', '.join(allowed)}")
        return text.strip().lower()

    return read


def parse_positive(text: str) -> int:
    """Read an integer above 0."""
    if not text.strip().isdigit() or int(text) == 0:
        raise ValueError(f"{text!r} is not a positive integer")
    return int(text)


def parse_whole(text: str) -> int:
    """Read an integer of 0 or more."""
    if not text.strip().isdigit():
        raise ValueError(f"{text!r} is not an integer")
    return int(text)


def parse_creation(text: str) -> str | int:
    """Read ``auto``, ``false``, or the number of partitions of new topics."""
    word = text.strip().lower()
    if word in ("auto", "false"):
        return word
    if not word.isdigit():
        raise ValueError(f"{text!r} is neither auto nor false nor a number of partitions")
    return int(word)


def parse_routing_mode(text: str) -> str:
    """Read a routing mode by its name in Pulsar's Java client."""
    if text.strip().lower() == "custompartition":
        raise ValueError("CustomPartition: put the partition of each row into the column __partition")
    modes = {"roundrobinpartition": "round-robin", "singlepartition": "single"}
    return modes[one_of(*modes)(text)]


def parse_hashing_scheme(text: str) -> str:
    """Read a hashing scheme by its name in Pulsar's Java client."""
    schemes = {"javastringhash": "java-string", "murmur3_32hash": "murmur3"}
    return schemes[one_of(*schemes)(text)]


def parse_waiting(text: str) -> bool:
    """Read ``true``, the only value that loses no rows."""
    if not parse_flag(text):
        raise ValueError("false would lose rows; leave it out, rows wait while maxPendingBytes are in flight")
    return True


def parse_positive_size(text: str) -> int:
    """Read a size above 0: bytes."""
    return _above_0(parse_size(text))


def parse_positive_duration_ms(text: str) -> int:
    """Read a duration above 0: milliseconds."""
    return _above_0(parse_duration_ms(text))


def _above_0(number: int) -> int:
    if number <= 0:
        raise ValueError("must be above 0")
    return number


def parse_web_url(text: str) -> str:
    """Read ``http://host:8080`` or ``https://...``. Return it without a slash at the end."""
    if not re.match(r"https?://[^/\s]+/?$", text.strip()):
        raise ValueError(f"{text!r} does not look like http://host:8080")
    parse_web_urls(text.strip())
    return text.strip().rstrip("/")


def parse_topic(text: str) -> str:
    """Read the name of a topic. Return the full name; short ones are in ``persistent://public/default``."""
    return str(TopicName.parse(text.strip()))


def parse_topics(text: str) -> tuple[str, ...]:
    """Read topics with commas between them, at least one."""
    names = tuple(map(parse_topic, parse_names(text)))
    if not names:
        raise ValueError("names no topic")
    return names


def parse_assignment(text: str) -> tuple[str, ...]:
    """Read ``{"topic": [0, 1]}``. Return the names of the partitions."""
    try:
        body = json.loads(text)
        names = [str(TopicName.parse(name).partition(index)) for name, indexes in body.items() for index in indexes]
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f'{text!r} is not JSON such as {{"topic": [0, 1]}}: {error}') from None
    if not names:
        raise ValueError("names no partition")
    return tuple(names)


def parse_namespaces(text: str) -> tuple[NamespaceName, ...]:
    """Read ``tenant/namespace`` names with commas between them, at least one."""
    namespaces = tuple(NamespaceName.parse(name) for name in parse_names(text))
    if not namespaces:
        raise ValueError("names no namespace")
    return namespaces


def parse_names(text: str) -> tuple[str, ...]:
    """Read names with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


KeyFiles = tuple[tuple[str, str], ...]
"""Names of keys and their files. The name "" covers all keys."""


def parse_key_files(text: str) -> KeyFiles:
    """Read one file for all names, or JSON with a file per name: ``{"orders": "/keys/orders.pem"}``.

    A key itself is refused: Spark shows options in plans and in its web pages.
    """
    if find_spec("cryptography") is None:
        raise ValueError(f"keys need cryptography as well: {pip_install('encryption')}")
    try:
        by_name = json.loads(text) if text.lstrip().startswith("{") else {"": text}
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON that names a file for each key: {error}") from None
    files = tuple((str(name), str(path).strip()) for name, path in by_name.items())
    if not files or not all(path for _, path in files):
        raise ValueError("names no file")
    if any(path.startswith("data:") or "BEGIN " in path for _, path in files):
        raise ValueError("a key would be visible in plans: use the name of its file")
    return files


def key_paths(files: KeyFiles) -> str | Mapping[str, str]:
    """Return the files in the form that a reader of keys takes."""
    return files[0][1] if files[0][0] == "" else dict(files)


flag = partial(option, read=parse_flag)
"""Field of an option that is ``true`` or ``false``."""
count = partial(option, read=parse_positive)
"""Field of an option with an integer above 0."""
size = partial(option, read=parse_positive_size)
"""Field of an option with a number of bytes above 0."""
duration = partial(option, read=parse_positive_duration_ms)
"""Field of an option with a time above 0, in milliseconds."""


def choice(words: tuple[str, ...], text: str, **declared: Any) -> Any:
    """Return a field of an option with one of these words; the first is the default."""
    return option(words[0], text, one_of(*words), **declared)
