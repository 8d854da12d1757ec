"""The scenarios that run on our broker and on a real Pulsar are all there."""

from __future__ import annotations

import pytest

from tests.scenarios import client_all, limits, subscriptions


@pytest.mark.parametrize(
    ("scenarios", "at_least"),
    [
        (client_all.SCENARIOS, 59),
        (limits.SCENARIOS, 19),
        (limits.PERIODIC_SCENARIOS, 5),
        (subscriptions.SCENARIOS, 18),
    ],
    ids=["client", "limits", "periods", "subscriptions"],
)
def test_scenarios_when_counted_then_none_was_lost(scenarios: list[object], at_least: int) -> None:
    assert len(scenarios) >= at_least
    assert len({each.__name__ for each in scenarios}) == len(scenarios)  # type: ignore[attr-defined]
