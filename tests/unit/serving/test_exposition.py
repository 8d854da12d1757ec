"""The text that Prometheus reads."""

from __future__ import annotations

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


def test_labels_escape_what_would_end_them() -> None:
    assert labelled(a='say "hi"', b="back\\slash", c="two\nlines", d="plain é") == (
        'a="say \\"hi\\"",b="back\\\\slash",c="two\\nlines",d="plain é"'
    )
