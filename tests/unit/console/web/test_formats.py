"""Numbers and names as people read them."""

from __future__ import annotations

import pytest

from interpulse.console.web import formats


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders", "orders"),
        ("a\x00b", "a⟨U+0000⟩b"),
        ("a\nb", "a⟨U+000A⟩b"),
        ("abc\u202edcba", "abc⟨U+202E⟩dcba"),
        ("a\u200bb", "a⟨U+200B⟩b"),
        ("\ufeffx", "⟨U+FEFF⟩x"),
        ("\ud800", "⟨U+D800⟩"),
        ("日本語 äöü", "日本語 äöü"),
        ("<script>", "<script>"),  # escaping is the templates' work
        ("x" * 3000, "x" * 2000 + "… (3,000 characters)"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    assert formats.plain(text) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [(None, "\u2013"), (0, "0 B"), (1023, "1,023 B"), (1024, "1.0 KiB"), (10 * 1024, "10 KiB"), (5 << 40, "5.0 TiB"),
     (1 << 70, "1,048,576 PiB")],
)  # fmt: skip
def test_size(number: float | None, shown: str) -> None:
    assert formats.size(number) == shown


@pytest.mark.parametrize(
    ("number", "shown"), [(None, "\u2013"), (0, "0"), (0.004, "0"), (0.5, "0.5"), (9.99, "9.99"), (1234.5, "1,234")]
)
def test_rate(number: float | None, shown: str) -> None:
    assert formats.rate(number) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "\u2013"), (0, "0 s"), (-5, "0 s"), (0.2, "< 1 s"), (59, "59 s"), (61, "1 min 1 s"), (3600, "1 h"),
     (90_061, "1 d 1 h")],
)  # fmt: skip
def test_duration(seconds: float | None, shown: str) -> None:
    assert formats.duration(seconds) == shown


@pytest.mark.parametrize(
    ("time_ms", "shown"),
    [
        (None, "\u2013"),
        (0, "1970-01-01 00:00:00 UTC"),
        (10**20, "100000000000000000000 ms"),
        (-1, "1969-12-31 23:59:59 UTC"),
    ],
)
def test_time(time_ms: int | None, shown: str) -> None:
    assert formats.time_text(time_ms) == shown


def test_ago_and_count() -> None:
    assert formats.ago(1_000, 62_000) == "1 min 1 s"
    assert formats.ago(None, 0) == "\u2013"
    assert formats.count(1_234_567.2) == "1,234,567"
    assert formats.count(None) == "\u2013"
