"""Checks of settings and arguments of the client. Errors name the argument, its value and the allowed ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, cast, get_args

from interpulse.model.extras import pip_install
from interpulse.model.names import TopicName


def check_choice(name: str, value: object, choices: Any) -> None:
    """Raise ValueError unless ``value`` is one of the literals of a type."""
    allowed = get_args(choices)
    if value not in allowed:
        raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, allowed))}")


def check_interval(name: str, interval_ms: int) -> None:
    """Raise ValueError for an interval below 1 ms."""
    if interval_ms < 1:
        hint = "; auto_update_partitions=False disables it" if name.startswith("auto_update") else ""
        raise ValueError(f"{name}={interval_ms} must be at least 1{hint}")


def check_key_reader(value: object, method: str) -> None:
    """Raise TypeError unless ``value`` is None or has the method. Raise ImportError if cryptography is missing."""
    if value is None:
        return
    if not callable(getattr(value, method, None)):
        raise TypeError(f"crypto_key_reader={value!r} has no method {method}: see DefaultCryptoKeyReader")
    if find_spec("cryptography") is None:
        raise ImportError(f"crypto_key_reader needs cryptography as well: {pip_install('encryption')}")


def check_least(settings: object, least: int, *names: str) -> None:
    """Raise ValueError for a setting with one of these names that is not an integer of at least ``least``."""
    for name in names:
        value = getattr(settings, name)
        if not isinstance(value, int) or value < least:
            raise ValueError(f"{name}={value!r} must be an integer, at least {least}")


def check_type(name: str, value: object, *kinds: type) -> None:
    """Raise TypeError for a value of another type."""
    if not isinstance(value, kinds):
        wanted = ", ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        raise TypeError(f"{name}={value!r} is of type {type(value).__name__}, expected {wanted}")


def check_names(name: str, value: object) -> None:
    """Raise TypeError unless ``value`` is a list or tuple of strings: a single string is a mistake."""
    check_type(name, value, tuple, list)
    for item in cast("Sequence[object]", value):
        check_type(name, item, str)


def check_pairs(name: str, value: object) -> None:
    """Raise TypeError unless ``value`` maps strings to strings."""
    check_type(name, value, Mapping)
    for pair in cast("Mapping[object, object]", value).items():
        for string in pair:
            check_type(name, string, str)


def check_provider(name: str, value: object, method: str) -> None:
    """Raise TypeError unless ``value`` is True, False or has the method.

    Raise ImportError if it is not False and opentelemetry-api is missing.
    """
    if value is False:
        return
    if value is not True and not hasattr(value, method):
        raise TypeError(f"{name}={value!r} must be True, False, or a provider of OpenTelemetry with {method}")
    if find_spec("opentelemetry") is None:
        raise ImportError(f"{name} needs opentelemetry-api as well: {pip_install('tracing')}")


def topic_name(text: object) -> TopicName:
    """Parse the name of a topic. Raise TypeError or InvalidTopicName."""
    check_type("topic", text, str)
    return TopicName.parse(str(text).strip())


def topic_names(topics: str | Iterable[str]) -> list[TopicName]:
    """Parse the names of one or several topics. Return each once. Raise TypeError or InvalidTopicName."""
    if isinstance(topics, str):
        return [topic_name(topics)]
    if isinstance(topics, bytes) or not isinstance(topics, Iterable):
        check_type("topics", topics, str, list)
    return list(dict.fromkeys(map(topic_name, topics)))
