"""The faults that scenarios plan."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.scenarios.imports import Imports
from tests.simulation.scenarios.proxied_cluster import ProxiedCluster
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.world import World

SEEDS = range(200)


@pytest.mark.parametrize(
    ("scenario", "victims"),
    [
        (ProxiedCluster, {"proxy1", "proxy2", "broker1", "bookie1", "zookeeper1"}),
        (Imports, {"broker", "bookie1", "zookeeper1"}),
    ],
)
def test_plans_when_drawn_from_many_seeds_then_each_part_is_killed(
    new_world: Callable[..., World], scenario: type[Scenario], victims: set[str]
) -> None:
    faults = [fault for seed in SEEDS for fault in scenario(new_world(seed)).plan()]
    assert victims <= {fault.node for fault in faults if fault.kind == "kill"}
    assert victims <= {fault.node for fault in faults if fault.kind == "power off"}
