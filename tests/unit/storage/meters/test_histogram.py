"""Values in buckets."""

from __future__ import annotations

import pytest

from interpulse.storage.meters.histogram import Histogram
from interpulse.storage.meters.write_meter import ENTRY_BYTES, WAIT_MS


@pytest.mark.parametrize("bounds", [WAIT_MS, ENTRY_BYTES])
def test_value_on_a_bound_belongs_below_it(bounds: tuple[float, ...]) -> None:
    histogram = Histogram(bounds)
    for bound in bounds:
        histogram.add(bound)
    assert histogram.counts == [1] * len(bounds) + [0]
    histogram.add(bounds[-1] + 1, 3)
    assert histogram.counts[-1] == 3
    assert histogram.sum == sum(bounds) + 3 * (bounds[-1] + 1)
