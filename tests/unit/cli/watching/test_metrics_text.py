"""Reading Prometheus' text format."""

import math

from interpulse.cli.watching.metrics_text import Metrics

TEXT = """\
# TYPE a gauge
a{topic="x \\"y\\" \\\\ {z}",n="1"} 2.5 1700000000000
a{n="2"} 1
b 7
b{broken
c{le="+Inf"} +Inf
"""


def test_samples_when_read_then_are_those_of_the_names() -> None:
    found = Metrics.parse(TEXT, ["a", "b", "missing"])
    assert [(dict(sample.labels), sample.value) for sample in found.samples["a"]] == [
        ({"topic": 'x "y" \\ {z}', "n": "1"}, 2.5),
        ({"n": "2"}, 1.0),
    ]
    assert (found.total("a"), found.total("b"), found.total("missing")) == (3.5, 7.0, None)
    assert math.isinf(Metrics.parse(TEXT, ["c"]).total("c") or 0)


def test_quantile_when_in_a_histogram_then_is_the_bound_of_its_bucket() -> None:
    lines = [f'h_bucket{{le="{bound}"}} {count}' for bound, count in (("0.1", 50), ("0.5", 99), ("+Inf", 100))]
    found = Metrics.parse("\n".join(lines), ["h_bucket"])
    assert (found.quantile_bound("h", 0.5), found.quantile_bound("h", 0.99)) == (0.1, 0.5)
    assert found.quantile_bound("h", 1.0) == math.inf
    assert Metrics().quantile_bound("h", 0.5) is None
