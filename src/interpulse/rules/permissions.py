"""Permissions: super users, tenant administrators, and grants.

A rule takes one role, the required permission, and a view of the privileged roles and the namespace's policies. Any of
the three grounds is sufficient. For a client behind a proxy both roles are checked, see `Principal.roles`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from interpulse.model.changes import Decision
from interpulse.model.errors import AuthorizationError, InvalidRequest, NotFound, TopicNotFound, Unauthorized
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.permissions import (
    SUBSCRIPTION_AUTH_MODES,
    SUBSCRIPTION_AUTH_NONE,
    SUBSCRIPTION_AUTH_PREFIX,
    Action,
    NamespaceOperation,
    Permissions,
    TopicOperation,
)
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.rules.namespaces import NamespaceView, decide_policies, existing_policies

_CLIENTS: Final = frozenset({Action.PRODUCE, Action.CONSUME})
_READERS: Final = frozenset({Action.CONSUME})

_TOPIC_ACTIONS: Final[Mapping[TopicOperation, frozenset[Action]]] = {
    TopicOperation.LOOKUP: _CLIENTS,
    TopicOperation.GET_STATS: _CLIENTS,
    TopicOperation.GET_METADATA: _CLIENTS,
    TopicOperation.PRODUCE: frozenset({Action.PRODUCE}),
    TopicOperation.CONSUME: _READERS,
    TopicOperation.SUBSCRIBE: _READERS,
    TopicOperation.UNSUBSCRIBE: _READERS,
    TopicOperation.GET_SUBSCRIPTIONS: _READERS,
    TopicOperation.GET_BACKLOG_SIZE: _READERS,
    TopicOperation.PEEK_MESSAGES: _READERS,
    TopicOperation.RESET_CURSOR: _READERS,
    TopicOperation.SKIP: _READERS,
    TopicOperation.EXPIRE_MESSAGES: _READERS,
    TopicOperation.SET_REPLICATED_SUBSCRIPTION_STATUS: _READERS,
    TopicOperation.GET_REPLICATED_SUBSCRIPTION_STATUS: _READERS,
}
"""Granted actions of which any one is sufficient. Operations not listed are for administrators only."""

_NAMESPACE_ACTIONS: Final[Mapping[NamespaceOperation, frozenset[Action]]] = {
    NamespaceOperation.GET_TOPICS: _CLIENTS,
    NamespaceOperation.GET_BUNDLE: _CLIENTS,
    NamespaceOperation.CLEAR_BACKLOG: _READERS,
    NamespaceOperation.UNSUBSCRIBE: _READERS,
}


def may_administer(role: str, *, super_users: Collection[str], tenant_admins: Collection[str] = ()) -> bool:
    """Return True if a role may do everything in a tenant. Outside of tenants only super users may."""
    return role in super_users or role in tenant_admins


def may_on_topic(
    role: str,
    operation: TopicOperation,
    topic: TopicName,
    policies: NamespacePolicies | None,
    subscription: str | None = None,
) -> bool:
    """Return True if a role that is not an administrator may perform this operation on a topic and subscription.

    Without a namespace nothing is granted.
    """
    wanted = _TOPIC_ACTIONS.get(operation)
    if wanted is None or policies is None or not wanted & policies.permissions.on_topic(topic, role):
        return False
    return wanted != _READERS or not subscription or _may_use(role, subscription, policies)


def _may_use(role: str, subscription: str, policies: NamespacePolicies) -> bool:
    """Return True if the subscription is open to the role and its name has the required prefix."""
    owners = policies.permissions.subscriptions.get(subscription)
    if owners and role not in owners:
        return False
    return policies.subscription_auth_mode != SUBSCRIPTION_AUTH_PREFIX or subscription.startswith(role)


def may_on_namespace(role: str, operation: NamespaceOperation, policies: NamespacePolicies | None) -> bool:
    """Return True if a role may perform this operation on a namespace. Grants on single topics do not count."""
    wanted = _NAMESPACE_ACTIONS.get(operation)
    if wanted is None or policies is None:
        return False
    return not wanted.isdisjoint(policies.permissions.namespace.get(role, ()))


class SubscriptionPrefixMissing(Unauthorized):
    """Refusal of a subscription whose name must begin with the role."""


def denied_on_topic(
    role: str,
    operation: TopicOperation,
    topic: TopicName,
    policies: NamespacePolicies | None,
    subscription: str | None = None,
) -> Unauthorized:
    """Return the refusal in Pulsar's words. If only the subscription's name is wrong, it states the prefix."""
    if subscription and policies and may_on_topic(role, operation, topic, policies):
        owners = policies.permissions.subscriptions.get(subscription)
        if not owners or role in owners:
            return SubscriptionPrefixMissing(
                "Failed to create consumer - The subscription name needs to be prefixed by the authentication role, "
                f"like {role}-xxxx for topic: {topic}"
            )
    return Unauthorized(f"Unauthorized to validateTopicOperation for operation [{operation}] on topic [{topic}]")


def denied_on_namespace(operation: NamespaceOperation, namespace: NamespaceName) -> AuthorizationError:
    """Return the refusal in Pulsar's words."""
    return AuthorizationError(
        f"Unauthorized to validateNamespaceOperation for operation [{operation}] on namespace [{namespace}]"
    )


def check_principals(
    role: str, original: str | None, proxies: Collection[str], *, same_allowed: bool = False
) -> AuthorizationError | None:
    """Return the refusal of a role that acts for another one; None if it may.

    ``same_allowed``: a client that is not a proxy may name its own role.
    """
    if role in proxies:
        if not original:
            return Unauthorized("originalPrincipal must be provided when connecting with a proxy role.")
        return Unauthorized("originalPrincipal cannot be a proxy role.") if original in proxies else None
    if not original or (same_allowed and original == role):
        return None
    return Unauthorized("cannot specify originalPrincipal when connecting without valid proxy role.")


# --- granting and revoking


def decide_grant(view: NamespaceView, role: str, actions: Collection[str]) -> Decision[None]:
    """Replace the actions granted to a role in the whole namespace. Raise InvalidRequest."""
    check_roles([role])
    granted = check_actions(actions)
    return _changed(view, lambda permissions: permissions.grant(role, granted))


def decide_revoke(view: NamespaceView, role: str) -> Decision[None]:
    """Revoke the role's permissions in the whole namespace. Those on single topics remain."""
    return _changed(view, lambda permissions: permissions.revoke(role))


def decide_grant_on_topic(
    view: NamespaceView, topic: TopicName, role: str, actions: Collection[str], *, exists: bool
) -> Decision[None]:
    """Replace the actions granted to a role on one topic and its partitions.

    Raise InvalidRequest, and TopicNotFound: a grant on a missing topic would apply to the topic's later creator.
    """
    check_roles([role])
    granted = check_actions(actions)
    check_topic_exists(topic, exists=exists)
    return _changed(view, lambda permissions: permissions.grant_topic([topic], role, granted))


def decide_revoke_on_topic(view: NamespaceView, topic: TopicName, role: str, *, exists: bool) -> Decision[None]:
    """Revoke the role's permissions on this topic only. Raise TopicNotFound."""
    check_topic_exists(topic, exists=exists)
    return _changed(view, lambda permissions: permissions.revoke_topic([topic], role))


def decide_grant_on_subscription(view: NamespaceView, subscription: str, roles: Collection[str]) -> Decision[None]:
    """Restrict subscriptions of this name to these roles. Raise InvalidRequest."""
    granted = check_roles(roles)
    return _changed(view, lambda permissions: permissions.grant_subscription(subscription, granted))


def decide_revoke_on_subscription(view: NamespaceView, subscription: str, role: str) -> Decision[None]:
    """Remove one role from a subscription. Raise NotFound if the role is not listed."""
    if role not in existing_policies(view).permissions.subscriptions.get(subscription, ()):
        raise NotFound(f"Role {role} has no permission on subscription {subscription}")
    return _changed(view, lambda permissions: permissions.revoke_subscription(subscription, role))


def decide_subscription_auth_mode(view: NamespaceView, mode: str | None) -> Decision[None]:
    """Set how subscriptions are authorized. Raises InvalidRequest."""
    checked = check_subscription_auth_mode(mode)
    return Decision(None, decide_policies(view, lambda old: old.changed(subscription_auth_mode=checked)).changes)


def check_topic_exists(topic: TopicName, *, exists: bool) -> None:
    """Refuse a topic that does not exist. Raise TopicNotFound."""
    if not exists:
        raise TopicNotFound(f"Topic {topic} not found")


def _changed(view: NamespaceView, change: Callable[[Permissions], Permissions]) -> Decision[None]:
    return Decision(None, decide_policies(view, lambda old: old.changed(granted=change(old.permissions))).changes)


def check_actions(actions: Iterable[str]) -> list[Action]:
    """Return the actions of a grant. Raise InvalidRequest if there are none, or one cannot be granted."""
    grantable = {str(action) for action in Action}
    wanted = list(actions)
    unknown = [action for action in wanted if action not in grantable]
    if unknown:
        raise InvalidRequest(f"Unknown actions {', '.join(unknown)}; those that can be granted: {', '.join(Action)}")
    if not wanted:
        raise InvalidRequest(f"Actions should not be empty; those that can be granted: {', '.join(Action)}")
    return [Action(action) for action in wanted]


def check_roles(roles: Iterable[str]) -> list[str]:
    """Return the roles of a grant. Raise InvalidRequest if there are none, or one is empty."""
    wanted = list(roles)
    if not wanted or not all(role.strip() for role in wanted):
        raise InvalidRequest("Roles should not be empty")
    return wanted


def check_subscription_auth_mode(mode: str | None) -> str:
    """Return the mode, NONE by default. Raise InvalidRequest for an unknown one."""
    if mode is None:
        return SUBSCRIPTION_AUTH_NONE
    if mode not in SUBSCRIPTION_AUTH_MODES:
        raise InvalidRequest(f"subscriptionAuthMode must be {' or '.join(SUBSCRIPTION_AUTH_MODES)}, not {mode!r}")
    return mode
