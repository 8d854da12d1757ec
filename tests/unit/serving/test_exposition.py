"""The text that Prometheus reads."""

from __future__ import annotations

import pytest

from interpulse.serving import exposition
from interpulse.serving.exposition import Exposition, labelled


def test_families_stay_together_in_the_order_they_were_begun() -> None:
    page = Exposition()
    page.add("a", "gauge", "First.", labelled(x="1"), 1)
    page.add("b_total", "counter", "Second.", "", 2.5)
    page.add("a", "gauge", "First.", labelled(x="2"), 3)
    page.family("empty", "gauge", "Nothing.")
    assert page.render().decode().splitlines() == [
        "# HELP a First.",
        "# TYPE a gauge",
        'a{x="1"} 1',
        'a{x="2"} 3',
        "# HELP b_total Second.",
        "# TYPE b_total counter",
        "b_total{} 2.5",
    ]


async def test_histogram_is_cumulative_and_pages_that_give_way_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Exposition()
    page.add_histogram("h", "Told.", labelled(x="1"), (0.5, 1.0), (2, 0, 1), 7.25)
    monkeypatch.setattr(exposition, "_LINES_AT_ONCE", 2)
    assert (await page.render_in_turns()) == page.render()
    assert page.render().decode().splitlines() == [
        "# HELP h Told.",
        "# TYPE h histogram",
        'h_bucket{x="1",le="0.5"} 2',
        'h_bucket{x="1",le="1.0"} 2',
        'h_bucket{x="1",le="+Inf"} 3',
        'h_count{x="1"} 3',
        'h_sum{x="1"} 7.25',
    ]


def test_labels_escape_what_would_end_them() -> None:
    assert labelled(a='say "hi"', b="back\\slash", c="two\nlines", d="plain é") == (
        'a="say \\"hi\\"",b="back\\\\slash",c="two\\nlines",d="plain é"'
    )
