"""Namespace isolation policies: the brokers that may serve a namespace.

Source: docs/reference/cluster-protocol.md#load-report.

As in Pulsar, the first policy of a cluster that matches a namespace counts. Its primary brokers serve it, and its
secondary ones too while there are fewer primary ones than ``min_limit``. A namespace without a policy is served by
brokers that are primary for none. Broker expressions match the host name without the port.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from interpulse.model.changes import Decision, SetIsolationPolicies
from interpulse.model.errors import InvalidRequest, PreconditionFailed, ServiceNotReady
from interpulse.model.isolation import MIN_AVAILABLE, BrokerIsolation, IsolationPolicies, IsolationPolicy, UnloadScope
from interpulse.model.numbers import read_integer

_PARAMETERS = ("min_limit", "usage_threshold")


@dataclass(frozen=True, slots=True)
class IsolationView:
    """Isolation policies of a cluster."""

    cluster: str
    registered: bool
    record: Mapping[str, Any] | None
    """Stored JSON by name; None if there never were any."""
    policies: IsolationPolicies


def decide_set_isolation_policy(
    view: IsolationView, name: str, policy: IsolationPolicy
) -> Decision[IsolationPolicy | None]:
    """Create or replace a policy, and return the previous one. Other policies keep their stored form.

    Raise PreconditionFailed if the cluster does not exist, and InvalidRequest (see `check_isolation_policy`).
    """
    _check_registered(view)
    check_isolation_policy(name, policy)
    return _replaced(view, name, {**(view.record or {}), name: policy.to_json()})


def decide_delete_isolation_policy(view: IsolationView, name: str) -> Decision[IsolationPolicy | None]:
    """Delete a policy if it exists, and return it. Raise PreconditionFailed if the cluster does not exist."""
    _check_registered(view)
    return _replaced(view, name, {other: body for other, body in (view.record or {}).items() if other != name})


def _replaced(view: IsolationView, name: str, record: Mapping[str, Any]) -> Decision[IsolationPolicy | None]:
    changes = () if record == view.record else (SetIsolationPolicies(view.cluster, record),)
    return Decision(view.policies.get(name), changes)


def _check_registered(view: IsolationView) -> None:
    if not view.registered:
        raise PreconditionFailed(f"Cluster {view.cluster} does not exist.")


def check_isolation_policy(name: str, policy: IsolationPolicy) -> None:
    """Refuse a policy without namespaces or brokers, or with invalid values. Raise InvalidRequest."""
    if not policy.namespaces:
        raise InvalidRequest(f"Isolation policy {name} needs namespaces: expressions such as shop/.*")
    if not policy.primary:
        raise InvalidRequest(f"Isolation policy {name} needs primary: expressions of host names such as broker-1.*")
    for field in ("namespaces", "primary", "secondary"):
        for expression in getattr(policy, field):
            if (reason := _fault(expression)) is not None:
                raise InvalidRequest(f"{field} of isolation policy {name} has {expression!r}: {reason}")
    if policy.unload_scope not in (None, *UnloadScope):
        raise InvalidRequest(
            f"unload_scope of isolation policy {name} must be one of {', '.join(UnloadScope)}, "
            f"not {policy.unload_scope!r}"
        )
    _check_failover(f"auto_failover_policy of isolation policy {name}", policy)


def _check_failover(where: str, policy: IsolationPolicy) -> None:
    if policy.policy_type != MIN_AVAILABLE:
        raise InvalidRequest(f"policy_type of {where} must be {MIN_AVAILABLE}, not {policy.policy_type!r}")
    for parameter in _PARAMETERS:
        value = policy.parameters.get(parameter)
        if read_integer(value) is None:
            raise InvalidRequest(f"parameters of {where} need {parameter}, an integer, not {value!r}")


def _fault(expression: str) -> str | None:
    try:
        re.compile(expression, re.ASCII)
    except re.error as error:
        return f"not a regular expression: {error}"
    return None


def permitted_brokers(policies: IsolationPolicies, namespace: str, broker_ids: Collection[str]) -> list[str]:
    """Return the brokers that may own a bundle of a namespace now; possibly none.

    Raise ServiceNotReady for an invalid expression, which only another program can have stored.
    """
    named = _policy_of(policies, namespace)
    if named is None:
        return [
            broker
            for broker in broker_ids
            if not any(_is_one(name, policy.primary, _host(broker)) for name, policy in policies.items())
        ]
    name, policy = named
    primary = [broker for broker in broker_ids if _is_one(name, policy.primary, _host(broker))]
    if len(primary) >= (policy.min_limit or 0):
        return primary
    helping = [broker for broker in broker_ids if _is_one(name, policy.secondary, _host(broker))]
    return primary + [broker for broker in helping if broker not in primary]


def nobody_permitted(policies: IsolationPolicies, namespace: str, broker_ids: Iterable[str]) -> str:
    """Return the message of a lookup when no registered broker may own the bundle."""
    there = ", ".join(sorted(broker_ids))
    return f"{_demand(policies, namespace)}, and none of the registered brokers is such a one: there is {there}"


def exclusion(policies: IsolationPolicies, namespace: str, broker_id: str, registered: Collection[str]) -> str | None:
    """Return the reason why a broker may not own a bundle of a namespace; None if it may. Raise ServiceNotReady."""
    if not policies or broker_id in permitted_brokers(policies, namespace, {broker_id, *registered}):
        return None
    return f"{_demand(policies, namespace)}, and {broker_id} is none"


def _demand(policies: IsolationPolicies, namespace: str) -> str:
    named = _policy_of(policies, namespace)
    if named is None:
        return f"Namespace {namespace} has no isolation policy and needs a broker that is primary for none"
    name, policy = named
    wanted = f"primary {', '.join(policy.primary)}"
    if policy.secondary:
        wanted += f", with fewer than {policy.min_limit} of them also secondary {', '.join(policy.secondary)}"
    return f"Namespace {namespace} is for brokers of isolation policy {name} ({wanted})"


def broker_isolation(policies: IsolationPolicies, broker: str) -> BrokerIsolation:
    """Return the role of a broker in the policies. Any text is accepted as a name and matched unchanged."""
    isolation = BrokerIsolation(broker)
    for name, policy in policies.items():
        primary = _is_one(name, policy.primary, broker)
        if primary or _is_one(name, policy.secondary, broker):
            isolation = BrokerIsolation(broker, name, (*isolation.namespaces, *policy.namespaces), primary)
    return isolation


def assignment(policies: IsolationPolicies, namespace: str, broker_id: str) -> tuple[str, bool]:
    """Return ``primary``, ``secondary`` or ``shared`` for a broker, and True if a policy names the namespace."""
    named = _policy_of(policies, namespace)
    if named is None:
        return "shared", False
    name, policy = named
    if _is_one(name, policy.primary, _host(broker_id)):
        return "primary", True
    return ("secondary" if _is_one(name, policy.secondary, _host(broker_id)) else "shared"), True


def namespaces_to_unload(
    name: str, old: IsolationPolicy | None, new: IsolationPolicy, namespaces: Iterable[str]
) -> list[str]:
    """Return the namespaces whose bundles move when a policy replaces an old one.

    By default those that only one of the two policies matches. If the primary brokers change, all that either matches.
    """
    if new.unload_scope == UnloadScope.NONE:
        return []
    before = {text for text in old.namespaces if _fault(text) is None} if old else set()  # invalid ones matched nothing
    primary_changed = old is not None and Counter(old.primary) != Counter(new.primary)
    everything = new.unload_scope == UnloadScope.ALL_MATCHING or primary_changed
    expressions = before | set(new.namespaces) if everything else before ^ set(new.namespaces)
    return [namespace for namespace in namespaces if _is_one(name, expressions, namespace)]


def _policy_of(policies: IsolationPolicies, namespace: str) -> tuple[str, IsolationPolicy] | None:
    return next((item for item in policies.items() if _is_one(item[0], item[1].namespaces, namespace)), None)


def _is_one(name: str, expressions: Iterable[str], text: str) -> bool:
    try:
        return any(re.fullmatch(expression, text, re.ASCII) for expression in expressions)
    except re.error as error:
        raise ServiceNotReady(
            f"Isolation policy {name} has an expression that this broker does not understand, set it again: "
            f"{error.pattern!r}: {error}"
        ) from error


def _host(broker_id: str) -> str:
    return broker_id.rpartition(":")[0] or broker_id
