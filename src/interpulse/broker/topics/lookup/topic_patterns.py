"""Patterns that choose topics of a namespace, in the syntax of RE2.

A client writes the pattern and we match it against every topic of a namespace, so matching takes time linear in the
name whatever the pattern is. Look-around and back references, which would break that, are not understood: such a
pattern is left to the client to evaluate.
"""

from __future__ import annotations

from typing import Final

from interpulse.model.errors import InvalidTopicName
from interpulse.model.names import TopicName

_MEMORY_BYTES_MAX: Final = 8 * 1024 * 1024


def without_domain(pattern: str) -> str:
    """Return the pattern without its domain, which plays no part: ``persistent://a/b/.*`` means ``a/b/.*``."""
    _, separator, rest = pattern.partition("://")
    return rest if separator else pattern


class TopicPattern:
    """Matches whole names ``tenant/namespace/topic``, where partitions have the name of their topic."""

    def __init__(self, text: str) -> None:
        """Compile a pattern. Raise InvalidTopicName, as Pulsar does, if RE2 does not accept it."""
        import re2  # loaded with the first pattern: most brokers are never asked for one

        options = re2.Options()
        options.log_errors = False  # the error has the message; the library would write to stderr
        options.max_mem = _MEMORY_BYTES_MAX
        try:
            self._matched = re2.compile(without_domain(text), options).fullmatch
        except re2.error as error:
            raise InvalidTopicName(f"Invalid topics pattern: {text}: {_reason(error)}") from None
        except UnicodeEncodeError:
            raise InvalidTopicName(f"Invalid topics pattern: {text!a}: half a character") from None

    def matches(self, topic: TopicName) -> bool:
        return self._matched(f"{topic.tenant}/{topic.namespace}/{topic.base.local_name}") is not None


def _reason(error: Exception) -> str:
    (reason,) = error.args
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
