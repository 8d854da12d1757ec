"""Time in simulated worlds, for the tests of the simulation itself."""

from __future__ import annotations

import pytest

from tests.simulation.world import Deadlock, World


def settle(world: World) -> None:
    """Run until nothing is due any more."""
    with pytest.raises(Deadlock):
        world.run(lambda: False, 100_000)


def let_pass(world: World, seconds: float) -> None:
    """Run for so long, although nothing may be due."""
    over: list[bool] = []
    world.after(seconds, lambda: over.append(True))
    world.run(lambda: bool(over), seconds)
