"""Which brokers may serve which namespaces, as Pulsar's own brokers have it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from interpulse.model.errors import InvalidRequest, ServiceNotReady
from interpulse.model.isolation import BrokerIsolation, IsolationPolicy
from interpulse.rules.isolation import (
    assignment,
    broker_isolation,
    check_isolation_policy,
    exclusion,
    namespaces_to_unload,
    nobody_permitted,
    permitted_brokers,
)

A, B, C, D = "a-1:8080", "a-2:8080", "b-1:8080", "c-1:8080"
ALL = (A, B, C, D)
LIMIT = {"min_limit": "2", "usage_threshold": "80"}
SHOP = IsolationPolicy(("shop/.*",), ("a-.*",), ("b-.*",), LIMIT)
BANK = IsolationPolicy(("bank/.*", "shop/money"), ("c-1",), (), LIMIT)


@pytest.mark.parametrize(
    ("namespace", "brokers", "expected"),
    [
        pytest.param("shop/x", ALL, [A, B], id="as many primary ones as the limit"),
        pytest.param("shop/x", (A, C, D), [A, C], id="fewer: secondary ones help"),
        pytest.param("shop/x", (C, D), [C], id="no primary one"),
        pytest.param("shop/x", (D,), [], id="none of either"),
        pytest.param("shop/money", ALL, [A, B], id="the first policy that names the namespace counts"),
        pytest.param("bank/x", ALL, [D], id="too few, and no secondary ones"),
        pytest.param("bank/x", (A, B), [], id="none there"),
        pytest.param("other/x", ALL, [C], id="no policy: brokers that are primary for none"),
        pytest.param("other/x", (A, D), [], id="no policy, and every broker is primary for one"),
        pytest.param("shop/x/y", ALL, [A, B], id="expressions match the whole name"),
        pytest.param("my/shop/x", ALL, [C], id="not a part of it"),
    ],
)
def test_permitted(namespace: str, brokers: tuple[str, ...], expected: list[str]) -> None:
    policies = {"shop": SHOP, "bank": BANK}
    assert permitted_brokers(policies, namespace, brokers) == expected
    for each in brokers:
        assert (exclusion(policies, namespace, each, brokers) is None) is (each in expected)


def test_permitted_when_there_are_no_policies_then_all_are() -> None:
    assert permitted_brokers({}, "shop/x", ALL) == list(ALL)
    assert exclusion({}, "shop/x", A, ()) is None


def test_permitted_when_an_expression_names_a_port_then_matches_none() -> None:
    """As in Pulsar, whose expressions are of host names."""
    assert permitted_brokers({"p": replace(SHOP, primary=("a-1:8080",))}, "shop/x", ALL) == [C]


def test_exclusion_when_the_broker_is_not_registered_yet_then_it_counts_as_being_there() -> None:
    assert exclusion({"shop": SHOP}, "shop/x", B, [A]) is None
    assert exclusion({"shop": SHOP}, "shop/x", C, [A, B]) == (
        "Namespace shop/x is for brokers of isolation policy shop "
        "(primary a-.*, with fewer than 2 of them also secondary b-.*), and b-1:8080 is none"
    )
    assert exclusion({"shop": SHOP}, "other/x", A, [C]) == (
        "Namespace other/x has no isolation policy and needs a broker that is primary for none, and a-1:8080 is none"
    )


def test_nobody_permitted_then_the_policy_and_the_brokers_are_named() -> None:
    assert nobody_permitted({"bank": BANK}, "bank/x", [B, A]) == (
        "Namespace bank/x is for brokers of isolation policy bank (primary c-1), "
        "and none of the registered brokers is such a one: there is a-1:8080, a-2:8080"
    )


def test_permitted_when_an_expression_is_not_understood_then_the_policy_is_named() -> None:
    with pytest.raises(
        ServiceNotReady, match=r"^Isolation policy p has an expression .* set it again: '\\\\p\{Alpha\}'"
    ):
        permitted_brokers({"p": replace(SHOP, primary=(r"\p{Alpha}",))}, "shop/x", ALL)


@pytest.mark.parametrize(
    ("broker", "expected"),
    [
        pytest.param("a-1", BrokerIsolation("a-1", "shop", ("shop/.*",), primary=True), id="primary"),
        pytest.param("b-1", BrokerIsolation("b-1", "shop", ("shop/.*",)), id="secondary"),
        pytest.param("x", BrokerIsolation("x"), id="neither"),
        pytest.param("a-1:8080", BrokerIsolation("a-1:8080", "shop", ("shop/.*",), primary=True), id="as it is named"),
        pytest.param("c-1:8080", BrokerIsolation("c-1:8080"), id="with a port that no expression has"),
        pytest.param(
            "a-9", BrokerIsolation("a-9", "late", ("shop/.*", "late"), primary=False), id="several: the last one counts"
        ),
    ],
)
def test_broker_isolation(broker: str, expected: BrokerIsolation) -> None:
    late = IsolationPolicy(("late",), ("none",), ("a-9",), LIMIT)
    assert broker_isolation({"shop": SHOP, "bank": BANK, "late": late}, broker) == expected


@pytest.mark.parametrize(
    ("namespace", "broker", "expected"),
    [
        ("shop/x", A, ("primary", True)),
        ("shop/x", C, ("secondary", True)),
        ("shop/x", D, ("shared", True)),
        ("other/x", D, ("shared", False)),
    ],
)
def test_assignment(namespace: str, broker: str, expected: tuple[str, bool]) -> None:
    assert assignment({"shop": SHOP}, namespace, broker) == expected


NAMES = ["a/1", "a/2", "b/1", "c/1"]
OLD = IsolationPolicy(("a/.*", "b/.*"), ("p", "q"), (), LIMIT)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, {}, ["a/1", "a/2", "b/1"], id="new"),
        pytest.param(None, {"unload_scope": "none"}, [], id="new, none"),
        pytest.param(OLD, {}, [], id="the same"),
        pytest.param(OLD, {"primary": ("q", "p")}, [], id="in another order"),
        pytest.param(OLD, {"secondary": ("s",)}, [], id="other secondary ones"),
        pytest.param(OLD, {"unload_scope": "all_matching"}, ["a/1", "a/2", "b/1"], id="the same, all matching"),
        pytest.param(OLD, {"namespaces": ("a/.*", "c/.*")}, ["b/1", "c/1"], id="other namespaces: those of one only"),
        pytest.param(OLD, {"namespaces": ("a/.*", "c/.*"), "unload_scope": "changed"}, ["b/1", "c/1"], id="changed"),
        pytest.param(
            OLD, {"namespaces": ("a/.*", "c/.*"), "unload_scope": "all_matching"}, NAMES, id="all that either names"
        ),
        pytest.param(OLD, {"primary": ("p",), "namespaces": ("c/.*",)}, NAMES, id="other primary ones"),
        pytest.param(
            replace(OLD, namespaces=("a/.*", "(")), {}, ["b/1"], id="in place of an expression that nobody understood"
        ),
        pytest.param(OLD, {"primary": ("p",), "unload_scope": "none"}, [], id="other primary ones, none"),
    ],
)
def test_namespaces_to_unload(old: IsolationPolicy | None, new: dict[str, Any], expected: list[str]) -> None:
    assert namespaces_to_unload("p", old, replace(OLD, **new), NAMES) == expected


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"namespaces": ()}, "Isolation policy p needs namespaces: "),
        ({"primary": ()}, "Isolation policy p needs primary: "),
        ({"namespaces": ("(",)}, "namespaces of isolation policy p has '[(]': not a regular expression: "),
        ({"primary": ("x", "[")}, r"primary of isolation policy p has '\[': "),
        ({"secondary": ("*",)}, "secondary of isolation policy p has '[*]': "),
        ({"policy_type": ""}, "policy_type of auto_failover_policy .* must be min_available, not ''"),
        ({"parameters": {"min_limit": "1"}}, "need usage_threshold, an integer, not None"),
        ({"parameters": {"min_limit": "x", "usage_threshold": "1"}}, "need min_limit, an integer, not 'x'"),
        ({"unload_scope": "some"}, "must be one of all_matching, changed, none, not 'some'"),
    ],
)
def test_check_when_it_cannot_be_followed_then_the_field_is_named(changed: dict[str, Any], message: str) -> None:
    check_isolation_policy("p", SHOP)
    with pytest.raises(InvalidRequest, match=message):
        check_isolation_policy("p", replace(SHOP, **changed))
