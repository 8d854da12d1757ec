"""Namespace isolation policies: which brokers of a cluster may serve which namespaces, as the metadata have them.

The JSON is Pulsar's NamespaceIsolationData and BrokerNamespaceIsolationData.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from interpulse.model.numbers import read_integer

__all__ = ["MIN_AVAILABLE", "BrokerIsolation", "IsolationPolicies", "IsolationPolicy", "UnloadScope", "load_policies"]

MIN_AVAILABLE: Final = "min_available"
"""The only type of fail-over that Pulsar has."""


class UnloadScope(StrEnum):
    """Which namespaces are unloaded when a policy is set."""

    ALL_MATCHING = "all_matching"
    """Those that the policy names, or named before."""
    CHANGED = "changed"
    """Those of them whose brokers may be others than before; the default."""
    NONE = "none"
    """None: they stay until they are unloaded."""


@dataclass(frozen=True, slots=True)
class IsolationPolicy:
    """Namespaces and the brokers that may serve them, all by regular expressions that match the whole text."""

    namespaces: tuple[str, ...]
    """Expressions of ``tenant/namespace``."""
    primary: tuple[str, ...]
    """Expressions of host names; brokers that one matches serve these namespaces and no others."""
    secondary: tuple[str, ...] = ()
    """Expressions of host names; such brokers help while there are fewer than ``min_limit`` primary ones."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Of the fail-over: ``min_limit``, and ``usage_threshold``, which has no effect in Pulsar's brokers either."""
    policy_type: str = MIN_AVAILABLE
    unload_scope: str | None = None
    """An `UnloadScope`; None = the default."""

    @property
    def min_limit(self) -> int | None:
        """With fewer primary brokers the secondary ones serve too; None if it is no integer."""
        return read_integer(self.parameters.get("min_limit"))

    def to_json(self) -> dict[str, Any]:
        """Pulsar's JSON."""
        body: dict[str, Any] = {
            "namespaces": list(self.namespaces),
            "primary": list(self.primary),
            "secondary": list(self.secondary),
            "auto_failover_policy": {"parameters": dict(self.parameters), "policy_type": self.policy_type},
        }
        return body if self.unload_scope is None else body | {"unload_scope": str(self.unload_scope)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> IsolationPolicy:
        """Read Pulsar's JSON; unknown fields are ignored, as Pulsar's clients do."""
        failover = body.get("auto_failover_policy") or {}
        scope = body.get("unload_scope")
        names, primary, secondary = (tuple(body.get(key) or ()) for key in ("namespaces", "primary", "secondary"))
        parameters = {str(key): str(value) for key, value in (failover.get("parameters") or {}).items()}
        kind = str(failover.get("policy_type") or "")
        return cls(names, primary, secondary, parameters, kind, None if scope is None else str(scope))


IsolationPolicies = Mapping[str, IsolationPolicy]
"""Those of a cluster by name, in the order of the record: the first that names a namespace counts."""


def load_policies(raw: bytes) -> dict[str, IsolationPolicy]:
    """A stored record. Raises ValueError for what is none."""
    body = json.loads(raw or b"{}")
    try:
        return {name: IsolationPolicy.from_json(policy) for name, policy in body.items()}
    except (AttributeError, TypeError) as error:
        raise ValueError(f"no isolation policies: {error}") from error


@dataclass(frozen=True, slots=True)
class BrokerIsolation:
    """A broker and the namespaces that isolation policies give it."""

    broker: str
    policy: str | None = None
    """The last policy that names the broker; None if none does."""
    namespaces: tuple[str, ...] = ()
    """The expressions of all that name it."""
    primary: bool = False
    """What the broker is to the last one."""

    def to_json(self) -> dict[str, Any]:
        """Pulsar's JSON."""
        named = {} if self.policy is None else {"policyName": self.policy}
        return {
            "brokerName": self.broker,
            **named,
            "namespaceRegex": list(self.namespaces),
            "primary": self.primary,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> BrokerIsolation:
        """Read Pulsar's JSON. Raises KeyError without a name."""
        namespaces = tuple(body.get("namespaceRegex") or ())
        return cls(body["brokerName"], body.get("policyName"), namespaces, bool(body.get("primary")))
