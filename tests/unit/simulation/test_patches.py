"""Patches come before the project, because defaults keep the functions that they find."""

from __future__ import annotations

import subprocess
import sys

import pytest

import interpulse
from tests.simulation import patches


def test_patches_when_the_project_is_loaded_then_they_are_refused() -> None:
    assert interpulse.__name__ in sys.modules
    with pytest.raises(RuntimeError, match="install the patches first"):
        patches.install()


WORLD = """
from tests.simulation import patches
patches.install()
import os, random, secrets, time, uuid
from interpulse.clock import now_ms
from tests.simulation.network import Network
from tests.simulation.world import World
before = time.monotonic()
assert time.monotonic() >= before > 0
world = World(5)
patches.enter(world)
assert time.monotonic() == world.now
world.now += 60
assert time.monotonic() == time.perf_counter() == world.now
assert now_ms() == world.wall_ns() // 1_000_000
print(random.random(), random.randint(0, 99), os.urandom(4).hex(), secrets.token_hex(4), uuid.uuid4())
"""


def test_patches_when_a_world_is_entered_then_time_and_randomness_are_its_own() -> None:
    first, second = (subprocess.run([sys.executable, "-c", WORLD], capture_output=True, text=True) for _ in range(2))
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == second.stdout != ""
