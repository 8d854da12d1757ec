"""The models of docs/models hold in every state, and each rule of theirs is needed: without it the checker objects."""

import pytest

from tools.models import check

pytestmark = pytest.mark.slow

_RUN_AHEAD = {"RunsAhead": "TRUE", "Forgets": "0", "Kills": "1"}


@pytest.mark.parametrize(
    ("model", "constants", "states_min"),
    [
        ("lane_settlement", {}, 50_000),
        ("lane_settlement", {"Forgets": "0", "Losses": "1", "Fails": "0"}, 20_000),
        ("lane_settlement", _RUN_AHEAD, 100_000),
        ("bundle_takeover", {}, 10_000),
        ("bundle_takeover", {"Losses": "0", "Crashes": "1"}, 10_000),
    ],
    ids=["lanes", "lanes with a lost checkpoint", "lanes with run-ahead", "take-over", "take-over with a crash"],
)
def test_model_when_all_rules_are_kept_then_no_state_violates_it(
    model: str, constants: dict[str, str], states_min: int
) -> None:
    outcome = check(model, constants)
    assert outcome.violated is None, outcome.output
    assert outcome.states > states_min, "faults are reached"


@pytest.mark.parametrize(
    ("model", "rule", "constants", "violated"),
    [
        ("lane_settlement", "Deduplicates", {}, "NothingDoubledOrReordered"),
        ("lane_settlement", "ReadsBack", {"Forgets": "0"}, "NothingMissing"),
        ("lane_settlement", "VerifiesRefused", {"Forgets": "0", "Kills": "1"}, "NothingMissing"),
        ("lane_settlement", "LaneFileFirst", {}, "NoFalseAlarm"),
        ("lane_settlement", "ReadsBackNew", {}, "NothingDoubledOrReordered"),
        ("lane_settlement", "Accounts", _RUN_AHEAD, "NoFalseAlarm"),
        ("lane_settlement", "AwaitsReceipts", _RUN_AHEAD, "CursorBehindTarget"),
        ("lane_settlement", "Recalls", _RUN_AHEAD, "NoFalseAlarm"),
        ("lane_settlement", "RecallsUnmarked", _RUN_AHEAD, "NoFalseAlarm"),
        ("lane_settlement", "AccountsAgain", _RUN_AHEAD, "NoFalseAlarm"),
        ("lane_settlement", "FencesReports", _RUN_AHEAD, "NoFalseAlarm"),
        ("bundle_takeover", "Deadline", {"Releases": "0", "Losses": "0"}, "ServesTheNewest"),
        ("bundle_takeover", "Fences", {}, "NothingLost"),
        ("bundle_takeover", "Guards", {}, "OnlyTheOwnerWrites"),
        ("bundle_takeover", "Rechecks", {}, "ServesTheNewest"),
        ("bundle_takeover", "ClosesFirst", {}, "AcknowledgementsKept"),
        ("bundle_takeover", "SameSession", {}, "ServesTheNewest"),
        ("bundle_takeover", "Ephemeral", {}, "temporal property"),
    ],
    ids=lambda value: value if isinstance(value, str) and value[0].isupper() else "",
)
def test_model_when_a_rule_is_broken_then_the_checker_finds_the_harm(
    model: str, rule: str, constants: dict[str, str], violated: str
) -> None:
    assert check(model, {**constants, rule: "FALSE"}).violated == violated
