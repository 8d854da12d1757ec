"""The broker that takes a bundle, and the answer to a lookup.

Source: docs/reference/cluster-protocol.md#placement, docs/reference/cluster-protocol.md#redirects.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from interpulse.model.brokers import BrokerAddresses, BundleLock, ListenerAddresses, LoadReport
from interpulse.model.errors import MetadataError, PulsarError, ServiceNotReady, UnknownListener
from interpulse.model.isolation import IsolationPolicy
from interpulse.rules.lookup import LookupTarget
from interpulse.rules.placement import TAKE, BrokersView, Take, candidate, decide_placement, is_load_change

PATH = "t/ns/0x00000000_0x40000000"
MODULAR = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"


def broker(name: str) -> BrokerAddresses:
    urls = ListenerAddresses(f"pulsar://{name}:6650", web_url=f"http://{name}:8080")
    return BrokerAddresses(f"{name}:8080", urls, {"outside": ListenerAddresses(f"pulsar://{name}.example:6650")})


def report(name: str, *, ours: bool = True, load_manager: str = MODULAR) -> LoadReport:
    return LoadReport(broker(name), "5.0.0+interpulse-1" if ours else "5.0.0-M1", load_manager)


def reports(*each: LoadReport) -> dict[str, LoadReport]:
    return {one.broker.broker_id: one for one in each}


ME, OTHER, REAL = "me:8080", "other:8080", "real:8080"
ALONE = BrokersView(ME, reports(report("me")))
LEAVING = BrokersView(ME, reports(report("other")))
NOBODY = BrokersView(ME, {})
LED = BrokersView(ME, reports(report("me"), report("real", ours=False)), leader=REAL)
LEADERLESS = BrokersView(ME, reports(report("me"), report("real", ours=False)))
LEADER_GONE = BrokersView(ME, reports(report("me"), report("other", ours=False)), leader=REAL)
LED_BY_OURS = BrokersView(ME, reports(report("me")), leader=ME)


def connect(name: str) -> LookupTarget:
    return LookupTarget(f"pulsar://{name}:6650", web_url=f"http://{name}:8080", broker_id=f"{name}:8080")


def redirect(name: str, *, authoritative: bool) -> LookupTarget:
    target = connect(name)
    return LookupTarget(
        target.service_url,
        web_url=target.web_url,
        broker_id=target.broker_id,
        redirect=True,
        authoritative=authoritative,
    )


OWNED = BundleLock(broker("other"))
MINE = BundleLock(broker("me"))
DISABLED = BundleLock(broker("other"), disabled=True)


@pytest.mark.parametrize(
    ("lock", "brokers", "authoritative", "destination", "expected"),
    [
        pytest.param(OWNED, ALONE, False, None, connect("other"), id="owned by another"),
        pytest.param(OWNED, LED, True, None, connect("other"), id="an owner wins over the flag"),
        pytest.param(OWNED, NOBODY, False, None, connect("other"), id="owned, nobody registered"),
        pytest.param(MINE, LED, False, None, connect("me"), id="owned here"),
        pytest.param(DISABLED, ALONE, False, None, MetadataError, id="being unloaded"),
        pytest.param(DISABLED, ALONE, True, None, MetadataError, id="being unloaded, with the flag"),
        pytest.param(None, ALONE, True, None, TAKE, id="free, with the flag"),
        pytest.param(None, LED, True, None, TAKE, id="free, with the flag, beside a leader"),
        pytest.param(None, ALONE, False, None, TAKE, id="A: the candidate is asked"),
        pytest.param(None, LEAVING, False, None, redirect("other", authoritative=True), id="A: another is candidate"),
        pytest.param(None, NOBODY, False, None, ServiceNotReady, id="no broker"),
        pytest.param(None, LED, False, None, redirect("real", authoritative=False), id="B: the leader knows"),
        pytest.param(None, LED_BY_OURS, False, None, TAKE, id="B: brokers of ours have no leader"),
        pytest.param(None, LEAVING, False, OTHER, redirect("other", authoritative=True), id="unloaded for another"),
        pytest.param(
            None, LEAVING, True, OTHER, redirect("other", authoritative=True), id="for another, with the flag"
        ),
        pytest.param(None, LEAVING, False, ME, TAKE, id="unloaded for this one"),
        pytest.param(None, ALONE, False, OTHER, TAKE, id="unloaded for one that is gone"),
    ],
)
def test_placement(
    lock: BundleLock | None,
    brokers: BrokersView,
    authoritative: bool,
    destination: str | None,
    expected: LookupTarget | Take | type[PulsarError],
) -> None:
    def decide() -> LookupTarget | Take:
        return decide_placement(PATH, lock, brokers, authoritative=authoritative, destination=destination)

    if isinstance(expected, type):
        with pytest.raises(expected):
            decide()
    else:
        assert decide() == expected


@pytest.mark.parametrize("brokers", [LEADERLESS, LEADER_GONE], ids=["no leader", "the leader is gone"])
def test_placement_when_real_brokers_have_no_leader_then_is_as_among_ours(brokers: BrokersView) -> None:
    chosen = candidate(PATH, brokers.reports)
    placed = decide_placement(PATH, None, brokers, authoritative=False)
    assert placed == (TAKE if chosen == ME else redirect(str(chosen).partition(":")[0], authoritative=True))


@pytest.mark.parametrize("wanted", ["me", "other"])
def test_placement_when_a_policy_names_a_broker_then_bundles_go_there(wanted: str) -> None:
    isolation = {"p": IsolationPolicy(("t/ns",), (wanted,), parameters={"min_limit": "1"})}
    brokers = BrokersView(ME, reports(report("me"), report("other")), isolation=isolation)
    for number in range(20):
        placed = decide_placement(f"t/ns/{number}", None, brokers, authoritative=False)
        assert placed == (TAKE if wanted == "me" else redirect("other", authoritative=True))
        placed = decide_placement(f"t/another/{number}", None, brokers, authoritative=False)
        assert placed == (TAKE if wanted == "other" else redirect("other", authoritative=True))


def test_placement_when_no_broker_is_permitted_then_the_policy_is_named() -> None:
    isolation = {"p": IsolationPolicy(("t/ns",), ("gone.*",), parameters={"min_limit": "1"})}
    brokers = BrokersView(ME, reports(report("me"), report("other")), isolation=isolation)
    with pytest.raises(ServiceNotReady) as caught:
        decide_placement(PATH, None, brokers, authoritative=False)
    assert str(caught.value) == (
        f"Namespace bundle {PATH} has no broker: Namespace t/ns is for brokers of isolation policy p (primary gone.*), "
        "and none of the registered brokers is such a one: there is me:8080, other:8080"
    )
    assert decide_placement(PATH, OWNED, brokers, authoritative=False) == connect("other")


def test_placement_when_a_listener_is_named_then_its_addresses_are_told() -> None:
    placed = decide_placement(PATH, OWNED, ALONE, authoritative=False, listener_name="outside")
    assert isinstance(placed, LookupTarget)
    assert placed.service_url == "pulsar://other.example:6650"
    with pytest.raises(UnknownListener, match=r"^The broker 'other:8080' does not have 'zz' listener configured\.$"):
        decide_placement(PATH, OWNED, ALONE, authoritative=False, listener_name="zz")


def test_view_when_a_broker_keeps_ownership_in_a_topic_then_is_named() -> None:
    extensible = report("real", ours=False, load_manager="org.apache.pulsar...ExtensibleLoadManagerImpl")
    assert BrokersView(ME, reports(report("me"), extensible)).extensible == REAL
    assert LED.extensible is None


# --- candidates

BROKERS = [f"10.0.0.{number}:8080" for number in range(1, 6)]
PATHS = [f"t/ns-{number}/0x{part:x}0000000_0x{part + 1:x}0000000" for number in range(200) for part in range(16)]


def test_candidate_when_many_bundles_then_each_broker_has_its_share() -> None:
    counts = Counter(candidate(path, BROKERS) for path in PATHS)
    share = len(PATHS) / len(BROKERS)
    assert set(counts) == set(BROKERS)
    assert all(0.85 * share < count < 1.15 * share for count in counts.values())


def test_candidate_when_a_broker_leaves_then_only_its_bundles_go_and_to_all_others() -> None:
    left = BROKERS[1:]
    moved: Counter[Any] = Counter()
    for path in PATHS:
        before, after = candidate(path, BROKERS), candidate(path, left)
        if before != BROKERS[0]:
            assert after == before
        else:
            moved[after] += 1
    assert all(moved[name] > 0.7 * sum(moved.values()) / len(left) for name in left)


def test_candidate_when_asked_anywhere_then_is_the_same() -> None:
    assert candidate(PATH, BROKERS) == candidate(PATH, BROKERS[::-1])
    assert candidate(PATH, []) is None


# --- load reports


@pytest.mark.parametrize(
    ("before", "now", "seconds", "expected"),
    [
        pytest.param({"topics": 100}, {"topics": 110}, 5, True, id="a tenth more"),
        pytest.param({"topics": 100}, {"topics": 109}, 5, False, id="less than a tenth"),
        pytest.param({"topics": 100}, {"topics": 10}, 4.9, False, id="too early"),
        pytest.param({"topics": 0}, {"topics": 1}, 5, True, id="the first topic"),
        pytest.param({"topics": 3}, {"topics": 3}, 899, False, id="nothing moved"),
        pytest.param({"topics": 3}, {"topics": 3}, 900, True, id="fifteen minutes"),
        pytest.param({"topics": 3, "bundles": 1}, {"topics": 3, "bundles": 0}, 6, True, id="another figure"),
    ],
)
def test_load_change(before: dict[str, int], now: dict[str, int], seconds: float, expected: bool) -> None:
    assert is_load_change(before, now, seconds=seconds) is expected
