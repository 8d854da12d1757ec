"""Histories of a model of two sites: the correct one is clean, and each mistake of it is noticed."""

import pytest

from interpulse.failover.history.judging import judge
from tests.durability.failover_model import Model, Mutant

SEEDS = range(8)

NOTICED_BY = {
    Mutant.DROPPED_RUN: "repeats",
    Mutant.ACKNOWLEDGED_BEFORE_COPIED: "passed",
    Mutant.ANOTHER_BATCH: "passed",
    Mutant.FORGOTTEN_RESET: "passed",
    Mutant.EARLY_PROMOTION: "late",
    Mutant.SKIPPED_SETTLE: "repeats",
    Mutant.LAG_ZERO: "late",
    Mutant.COUNTED_MARKERS: "kept",
    Mutant.PASSED_LOCAL: "passed",
}


@pytest.mark.parametrize("seed", SEEDS)
def test_history_when_nothing_is_wrong_then_clean(seed: int) -> None:
    assert judge(Model(seed).play()) == []


@pytest.mark.parametrize("mutant", Mutant)
def test_history_when_the_product_has_a_mistake_then_its_property_is_violated(mutant: Mutant) -> None:
    noticed = [{violation.rule for violation in judge(Model(seed, mutant).play())} for seed in SEEDS]
    assert all(NOTICED_BY[mutant] in rules for rules in noticed), noticed
