"""The question if a switch is under way, from the roles of both sites and its own journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpulse.failover.journal import Operation
from interpulse.failover.steps.ways_open import WaysOpen
from interpulse.rules.failover_role import Role
from tests.unit.failover.steps.test_drain import Scene


@pytest.fixture
def scene(tmp_path: Path, operation: Operation) -> Scene:
    return Scene(tmp_path, operation)


async def test_switch_when_its_journal_has_the_fence_then_is_under_way(scene: Scene) -> None:
    scene.switch.journal.begin("fence", "t1")
    assert await scene.switch.is_under_way()


async def test_switch_when_killed_before_the_fence_then_its_begin_is_judged_again(scene: Scene) -> None:
    scene.switch.journal.begin("fence", "t1")
    scene.east.role = Role.ACTIVE
    assert not await scene.switch.is_under_way()


async def test_switch_when_another_one_fenced_the_origin_then_its_begin_is_judged(scene: Scene) -> None:
    scene.switch.journal.begin(WaysOpen.name, "t1")
    assert not await scene.switch.is_under_way()
