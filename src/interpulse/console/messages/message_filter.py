"""The filter of a search for messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from interpulse.client.messages import Message
from interpulse.console.visit import Visit
from interpulse.model.errors import InvalidRequest

_PATTERN_MAX: Final = 1_000
_MEMORY_BYTES_MAX: Final = 8 * 1024 * 1024


class MessageFilter:
    """A key, a property, a producer, and a text or RE2 pattern in the content; empty criteria match everything.

    Raises InvalidRequest for an invalid pattern.
    """

    def __init__(
        self, *, key: str = "", property_name: str = "", property_value: str = "", producer: str = "", content: str = ""
    ) -> None:
        """Create a filter; ``content`` is a text, or a pattern between two slashes."""
        self._key = key
        self._property = property_name, property_value
        self._producer = producer
        self._content = content
        self._in_content = _search(content)

    @classmethod
    def of(cls, visit: Visit) -> MessageFilter:
        """Return the filter of the page's address. A property is ``name=value`` or only a name."""
        name, _, value = visit.text("property").partition("=")
        return cls(
            key=visit.text("key"),
            property_name=name,
            property_value=value,
            producer=visit.text("producer"),
            content=visit.text("content"),
        )

    @property
    def empty(self) -> bool:
        return not (self._key or self._property[0] or self._producer or self._content)

    def matches(self, message: Message) -> bool:
        name, value = self._property
        return (
            (not self._key or message.key == self._key)
            and (not self._producer or message.producer_name == self._producer)
            and (not name or (name in message.properties and value in ("", message.properties[name])))
            and (not self._content or self._in_content(message.content or b""))
        )


def _search(text: str) -> Callable[[bytes], bool]:
    if len(text) > 2 and text.startswith("/") and text.endswith("/"):
        return _matched(text[1:-1])
    raw = text.encode()
    return lambda content: raw in content


def _matched(pattern: str) -> Callable[[bytes], bool]:
    """Return a match function. RE2 takes time linear in the content for every pattern."""
    import re2

    if len(pattern) > _PATTERN_MAX:
        raise InvalidRequest(f"A pattern may have {_PATTERN_MAX} characters, not {len(pattern)}")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES_MAX
    options.encoding = re2.Options.Encoding.LATIN1  # contents are bytes
    try:
        search = re2.compile(pattern.encode(), options).search
    except re2.error as error:
        raise InvalidRequest(f"The pattern /{pattern}/ is not valid in RE2: {error}") from None
    return lambda content: search(content) is not None
