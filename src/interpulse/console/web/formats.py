"""Numbers, times and names as people read them. Pure: the current time is an argument."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_NONE: Final = "\u2013"
_SHOWN_MAX: Final = 2_000
_UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
"""Characters without a shape, or that change their neighbours: control, bidi, zero-width and tag characters."""
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_KIBI: Final = 1024
_TEN: Final = 10
_SPANS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def plain(text: str) -> str:
    """Return a foreign text with invisible characters spelled out; a very long one is cut and says so."""
    if len(text) > _SHOWN_MAX:
        return f"{plain(text[:_SHOWN_MAX])}… ({len(text):,} characters)"
    return _UNSEEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)


def count(number: float | None) -> str:
    """Format a whole number with separators."""
    return _NONE if number is None else f"{round(number):,}"


def rate(number: float | None) -> str:
    """Format a rate per second with three digits, without the unit."""
    if number is None:
        return _NONE
    if number and number < _TEN:
        return f"{number:.2f}".rstrip("0").rstrip(".") or "0"
    return f"{number:,.0f}"


def size(number: float | None) -> str:
    """Format a number of bytes in the unit that fits."""
    if number is None:
        return _NONE
    left, unit = float(number), 0
    while abs(left) >= _KIBI and unit < len(_UNITS) - 1:
        left, unit = left / _KIBI, unit + 1
    return f"{left:,.0f} {_UNITS[unit]}" if unit == 0 or left >= _TEN else f"{left:.1f} {_UNITS[unit]}"


def duration(seconds: float | None) -> str:
    """Format a duration with its two largest units: "2 h 5 min"."""
    if seconds is None:
        return _NONE
    left = max(0, round(seconds))
    spans = []
    for span, unit in _SPANS:
        if left >= span:
            spans.append(f"{left // span} {unit}")
            left %= span
    return " ".join(spans[:2]) or ("0 s" if seconds <= 0 else "< 1 s")


def ago(since_ms: int | None, now_ms: int) -> str:
    """Format the time since a moment."""
    return _NONE if since_ms is None else duration((now_ms - since_ms) / 1000)


def time_text(time_ms: int | None) -> str:
    """Format a time in UTC, as in logs."""
    if time_ms is None:
        return _NONE
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"
