"""Namespace isolation policies: the brokers of a cluster that may serve a namespace, as stored in the metadata.

The JSON is Pulsar's NamespaceIsolationData and BrokerNamespaceIsolationData.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from interpulse.model.numbers import read_integer

MIN_AVAILABLE: Final = "min_available"
"""The only fail-over type of Pulsar."""


class UnloadScope(StrEnum):
    """The namespaces that are unloaded when a policy is set."""

    ALL_MATCHING = "all_matching"
    """The namespaces that the policy names, or named before."""
    CHANGED = "changed"
    """The matching namespaces whose brokers may change; the default."""
    NONE = "none"
    """No namespaces: they stay until they are unloaded."""


@dataclass(frozen=True, slots=True)
class IsolationPolicy:
    """Namespaces and the brokers that may serve them, as regular expressions that match the whole text."""

    namespaces: tuple[str, ...]
    """Expressions of ``tenant/namespace``."""
    primary: tuple[str, ...]
    """Expressions of host names. Matching brokers serve these namespaces and no others."""
    secondary: tuple[str, ...] = ()
    """Expressions of host names. Matching brokers help while there are fewer than ``min_limit`` primary ones."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the fail-over: ``min_limit``, and ``usage_threshold``, which has no effect in Pulsar's brokers
    either.
    """
    policy_type: str = MIN_AVAILABLE
    unload_scope: str | None = None
    """An `UnloadScope`; None = the default."""

    @property
    def min_limit(self) -> int | None:
        """The least number of primary brokers without help of secondary ones; None if it is no integer."""
        return read_integer(self.parameters.get("min_limit"))

    def to_json(self) -> dict[str, Any]:
        """Return Pulsar's JSON."""
        body: dict[str, Any] = {
            "namespaces": list(self.namespaces),
            "primary": list(self.primary),
            "secondary": list(self.secondary),
            "auto_failover_policy": {"parameters": dict(self.parameters), "policy_type": self.policy_type},
        }
        return body if self.unload_scope is None else body | {"unload_scope": str(self.unload_scope)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> IsolationPolicy:
        """Parse Pulsar's JSON. Unknown fields are ignored, as in Pulsar's clients."""
        failover = body.get("auto_failover_policy") or {}
        scope = body.get("unload_scope")
        names, primary, secondary = (tuple(body.get(key) or ()) for key in ("namespaces", "primary", "secondary"))
        parameters = {str(key): str(value) for key, value in (failover.get("parameters") or {}).items()}
        kind = str(failover.get("policy_type") or "")
        return cls(names, primary, secondary, parameters, kind, None if scope is None else str(scope))


IsolationPolicies = Mapping[str, IsolationPolicy]
"""The policies of a cluster by name, in the order of the record: the first that names a namespace counts."""


def load_policies(raw: bytes) -> dict[str, IsolationPolicy]:
    """Parse a stored record. Raise ValueError."""
    body = json.loads(raw or b"{}")
    try:
        return {name: IsolationPolicy.from_json(policy) for name, policy in body.items()}
    except (AttributeError, TypeError) as error:
        raise ValueError(f"no isolation policies: {error}") from error


@dataclass(frozen=True, slots=True)
class BrokerIsolation:
    """A broker, and the namespaces that isolation policies assign to it."""

    broker: str
    policy: str | None = None
    """The last policy that names the broker; None if there is none."""
    namespaces: tuple[str, ...] = ()
    """The expressions of all policies that name it."""
    primary: bool = False
    """True if the last policy names it as a primary broker."""

    def to_json(self) -> dict[str, Any]:
        """Return Pulsar's JSON."""
        named = {} if self.policy is None else {"policyName": self.policy}
        return {"brokerName": self.broker, **named, "namespaceRegex": list(self.namespaces), "primary": self.primary}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> BrokerIsolation:
        """Parse Pulsar's JSON. Raise KeyError without a name."""
        namespaces = tuple(body.get("namespaceRegex") or ())
        return cls(body["brokerName"], body.get("policyName"), namespaces, bool(body.get("primary")))
