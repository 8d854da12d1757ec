"""Rules of an automatic failover: a table of probes and of what follows from them."""

from __future__ import annotations

import pytest

from interpulse.client.failover.auto import AutoFailover, AutoRules, Health
from interpulse.client.failover.sites import Site

EAST, WEST, NORTH = (Site(f"pulsar://{name}:6650") for name in ("east", "west", "north"))
HEALTH = {"+": Health.WELL, "-": Health.DEAD, "x": Health.REFUSED}


def play(options: AutoFailover, east: str, west: str, north: str = "") -> list[tuple[int, str]]:
    """Play one probe of each site a second, and return the changes: their second, and the letter of the site."""
    rules = AutoRules(options, 0.0)
    changes = []
    for second, outcomes in enumerate(zip(east, west, north or "-" * len(east), strict=True), 1):
        by_site = dict(zip((EAST, WEST, NORTH), outcomes, strict=True))
        probed = {site: HEALTH[by_site[site]] for site in rules.probed}
        decision = rules.note(probed, float(second))
        if decision is not None:
            rules.changed(decision.site, float(second))
            changes.append((second, decision.site.service_url[9]))
    return changes


@pytest.mark.parametrize(
    ("options", "east", "west", "north", "expected"),
    [
        pytest.param({}, "+++++", "+++++", "", [], id="all well"),
        pytest.param({}, "+---", "++++", "", [(4, "w")], id="three failures in a row"),
        pytest.param({}, "--+--+--", "++++++++", "", [], id="failures with an answer between"),
        pytest.param({}, "------", "--++++", "", [(3, "w")], id="the other one is well when it has to be"),
        pytest.param({}, "------", "---+++", "", [(4, "w")], id="waits until another one is well"),
        pytest.param({}, "---", "---", "++-", [], id="nothing is well at that moment"),
        pytest.param({}, "---", "---", "+++", [(3, "n")], id="the first that is well"),
        pytest.param({}, "---", "+++", "+++", [(3, "w")], id="in the order of the list"),
        pytest.param({}, "xxxxx", "+++++", "", [], id="refused: well, but not for this client"),
        pytest.param({}, "--x--", "+++++", "", [], id="a refusal is an answer"),
        pytest.param({}, "---", "xxx", "+++", [(3, "n")], id="no change to one that refuses this client"),
        pytest.param({}, "---++++++++", "+++++++++++", "", [(3, "w")], id="no return by itself"),
        pytest.param(
            {"hold_s": 60}, "------++", "+++----+", "++++++++", [(3, "w"), (6, "n")], id="away from a dead one"
        ),
        pytest.param({"back_after": 2, "hold_s": 0}, "---+++", "++++++", "", [(3, "w"), (5, "e")], id="returns"),
        pytest.param({"back_after": 2, "hold_s": 4}, "---+++++", "++++++++", "", [(3, "w"), (7, "e")], id="held"),
        pytest.param({"back_after": 2, "hold_s": 0}, "---+-+xx+", "+++++++++", "", [(3, "w")], id="not well in a row"),
    ],
)
def test_changes_when_probes_are_played(
    options: dict[str, float], east: str, west: str, north: str, expected: list[tuple[int, str]]
) -> None:
    assert play(AutoFailover([EAST, WEST, NORTH], fail_after=3, **options), east, west, north) == expected  # type: ignore[arg-type]


def test_other_sites_when_the_present_one_answers_then_are_not_probed() -> None:
    rules = AutoRules(AutoFailover([EAST, WEST]), 0.0)
    assert rules.probed == (EAST,)
    rules.note({EAST: Health.DEAD}, 1.0)
    assert list(rules.probed) == [EAST, WEST]
    rules.note({EAST: Health.WELL, WEST: Health.WELL}, 2.0)
    assert rules.probed == (EAST,)


def test_silence_when_measured_then_begins_with_the_last_answer() -> None:
    rules = AutoRules(AutoFailover([EAST, WEST], fail_after=2), 0.0)
    rules.note({EAST: Health.WELL}, 1.0)
    rules.note({EAST: Health.DEAD}, 2.0)
    decision = rules.note({EAST: Health.DEAD, WEST: Health.WELL}, 4.0)
    assert decision is not None
    assert (decision.reason, rules.silent_s(4.0)) == (f"2 probes of {EAST} in a row failed", 3.0)
    rules.changed(WEST, 4.0)
    assert rules.silent_s(4.0) == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"sites": [EAST]}, "at least two"),
        ({"sites": "pulsar://east:6650"}, "at least two"),
        ({"sites": [EAST, EAST.service_url]}, "once"),
        ({"fail_after": 0}, "fail_after"),
        ({"back_after": 0}, "back_after"),
        ({"interval_s": 0}, "interval_s"),
        ({"timeout_s": -1}, "timeout_s"),
        ({"probe": "ping"}, "probe"),
    ],
)
def test_settings_when_they_make_no_sense_then_are_refused(options: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        AutoFailover(**{"sites": [EAST, WEST], **options})  # type: ignore[arg-type]


def test_sites_when_given_as_addresses_then_have_no_credentials() -> None:
    assert AutoFailover([EAST.service_url, WEST]).listed == (EAST, WEST)
