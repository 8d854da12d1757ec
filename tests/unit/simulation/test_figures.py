"""Figures that the simulation writes for the page of what is proven."""

from __future__ import annotations

from pathlib import Path

from tests.simulation.bugs.planted import PLANTS
from tests.simulation.figures import PlantFigures, SeedFigures, read_plants, read_seeds, update_plants, update_seeds
from tests.simulation.judge import Finding
from tests.simulation.runs import Order, Result

FIGURES = PlantFigures(1, "single", 3, ["L1"], 0.5)
OTHER = PlantFigures(2, "single", None, [], 7.5)


def result(seed: int, *properties: str, seconds: float = 30.0) -> Result:
    findings = [Finding(each, "seen") for each in properties]
    return Result(Order(seed, "single", 1), findings=findings, seconds=seconds, cpu_seconds=0.25)


def test_figures_of_plants_when_updated_then_those_of_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "plants.json"
    update_plants(path, [OTHER, FIGURES])
    update_plants(path, [FIGURES._replace(seed=4)])
    assert read_plants(path) == {1: FIGURES._replace(seed=4), 2: OTHER}


def test_figures_of_seeds_when_updated_with_another_codec_then_both_stay(tmp_path: Path) -> None:
    path = tmp_path / "seeds.json"
    ours = SeedFigures("single", "native", 20, 0, 100, 900, 12.5)
    update_seeds(path, [ours])
    update_seeds(path, [ours._replace(codec="python")])
    assert list(read_seeds(path)) == [("single", "native"), ("single", "python")]


def test_figures_of_a_plant_when_two_seeds_find_it_then_the_first_counts() -> None:
    played = [result(1), result(3, "L2"), result(2, "L1", "L5")]
    assert PlantFigures.of(PLANTS[1], played) == PlantFigures(1, "single", 2, ["L1", "L5"], 0.8)


def test_figures_of_a_plant_when_no_seed_finds_it_then_there_is_none() -> None:
    assert PlantFigures.of(PLANTS[1], [result(1)]).seed is None


def test_figures_of_a_scenario_when_one_seed_fails_then_it_is_counted() -> None:
    figures = SeedFigures.of("single", "native", [result(1), result(2, "L1")])
    assert (figures.seeds, figures.failed, figures.world_seconds) == (2, 1, 60)
