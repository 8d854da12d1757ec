"""The table of who may do what, row by row as a real Pulsar answered it."""

from __future__ import annotations

import itertools

import pytest

from interpulse.model.errors import AuthorizationError, InvalidRequest, Unauthorized
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.permissions import Action, NamespaceOperation, Permissions, TopicOperation
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.rules.permissions import (
    SubscriptionPrefixMissing,
    check_actions,
    check_principals,
    check_roles,
    check_subscription_auth_mode,
    denied_on_namespace,
    denied_on_topic,
    may_administer,
    may_on_namespace,
    may_on_topic,
)

TOPIC = TopicName.parse("persistent://acme/app/t")
ANOTHER = TopicName.parse("persistent://acme/app/u")
LEVELS = ("namespace", "topic", "partition of the topic", "another topic")

PRODUCERS = "PRODUCE"
CLIENTS = "LOOKUP GET_STATS GET_METADATA"
CONSUMERS = (
    "CONSUME SUBSCRIBE UNSUBSCRIBE GET_SUBSCRIPTIONS GET_BACKLOG_SIZE PEEK_MESSAGES RESET_CURSOR SKIP EXPIRE_MESSAGES "
    "SET_REPLICATED_SUBSCRIPTION_STATUS GET_REPLICATED_SUBSCRIPTION_STATUS"
)
ADMINISTRATORS = "UPDATE_METADATA DELETE_METADATA COMPACT OFFLOAD TERMINATE TRIM_TOPIC UNLOAD"
ALLOWED = {
    **{key: {"produce"} for key in PRODUCERS.split()},
    **{key: {"produce", "consume"} for key in CLIENTS.split()},
    **{key: {"consume"} for key in CONSUMERS.split()},
    **{key: set() for key in ADMINISTRATORS.split()},
}
ON_NAMESPACE = {
    "GET_TOPICS": {"produce", "consume"},
    "GET_BUNDLE": {"produce", "consume"},
    "CLEAR_BACKLOG": {"consume"},
    "UNSUBSCRIBE": {"consume"},
    **{
        key: set()
        for key in ["CREATE_TOPIC", "DELETE_TOPIC", "GET_PERMISSION", "GRANT_PERMISSION", "REVOKE_PERMISSION"]
    },
}


def granted(level: str, action: str, **policies: str) -> NamespacePolicies:
    """Policies that grant one action to the role ``app`` at one level."""
    nothing = Permissions()
    permissions = {
        "namespace": nothing.grant("app", [action]),
        "topic": nothing.grant_topic([TOPIC], "app", [action]),
        "partition of the topic": nothing.grant_topic([TOPIC.partition(0)], "app", [action]),
        "another topic": nothing.grant_topic([ANOTHER], "app", [action]),
    }[level]
    return NamespacePolicies(granted=permissions, **policies)  # type: ignore[arg-type]


def test_table_when_compared_with_the_operations_then_has_every_one() -> None:
    assert set(ALLOWED) == set(TopicOperation)
    assert set(ON_NAMESPACE) == set(NamespaceOperation)


@pytest.mark.parametrize("operation", list(TopicOperation))
@pytest.mark.parametrize("level", LEVELS)
def test_topic_when_one_action_is_granted_then_only_what_it_stands_for_is_allowed(
    level: str, operation: TopicOperation
) -> None:
    for action, asker in itertools.product(Action, ("app", "somebody")):
        policies = granted(level, action)
        right = asker == "app" and action in ALLOWED[operation]
        assert may_on_topic(asker, operation, TOPIC, policies) == (right and level in ("namespace", "topic"))
        assert may_on_topic(asker, operation, TOPIC.partition(0), policies) == (right and level != "another topic")
        assert may_on_topic(asker, operation, TOPIC.partition(1), policies) == (
            right and level in ("namespace", "topic")
        )


@pytest.mark.parametrize("operation", list(TopicOperation))
def test_topic_when_there_is_no_namespace_then_nothing_is_allowed(operation: TopicOperation) -> None:
    assert not may_on_topic("app", operation, TOPIC, None)
    assert not may_on_topic("app", operation, TOPIC, NamespacePolicies())


@pytest.mark.parametrize("operation", list(NamespaceOperation))
@pytest.mark.parametrize("action", list(Action))
def test_namespace_when_one_action_is_granted_then_only_grants_on_the_namespace_count(
    action: Action, operation: NamespaceOperation
) -> None:
    assert may_on_namespace("app", operation, granted("namespace", action)) == (action in ON_NAMESPACE[operation])
    assert not may_on_namespace("app", operation, granted("topic", action))
    assert not may_on_namespace("somebody", operation, granted("namespace", action))
    assert not may_on_namespace("app", operation, None)


@pytest.mark.parametrize("operation", CONSUMERS.split())
@pytest.mark.parametrize(
    ("owners", "mode", "subscription", "allowed"),
    [
        ([], None, "any", True),
        ([], "None", "any", True),
        (["app"], None, "any", True),
        (["other"], None, "any", False),
        (["other"], None, None, True),
        ([], "Prefix", "any", False),
        ([], "Prefix", "app-any", True),
        ([], "Prefix", "app", True),
        ([], "Prefix", None, True),
        ([], "Prefix", "", True),
        (["other"], "Prefix", "app-any", False),
        (["app"], "Prefix", "any", False),
    ],
)
def test_subscription_when_it_belongs_to_roles_or_needs_a_prefix_then_others_are_kept_off(
    owners: list[str], mode: str | None, subscription: str | None, allowed: bool, operation: str
) -> None:
    grants = Permissions().grant("app", ["consume"])
    if subscription:
        grants = grants.grant_subscription(subscription, owners)
    policies = NamespacePolicies(granted=grants, subscription_auth_mode=mode)
    assert may_on_topic("app", TopicOperation(operation), TOPIC, policies, subscription) is allowed


def test_subscription_when_it_belongs_to_a_role_without_consume_then_that_is_not_enough() -> None:
    policies = NamespacePolicies(granted=Permissions().grant_subscription("s", ["app"]))
    assert not may_on_topic("app", TopicOperation.SUBSCRIBE, TOPIC, policies, "s")


@pytest.mark.parametrize(
    ("role", "allowed"), [("root", True), ("acme-admin", True), ("other-admin", False), ("", False)]
)
def test_administrators_when_asked_about_then_are_super_users_and_those_of_the_tenant(role: str, allowed: bool) -> None:
    assert may_administer(role, super_users={"root"}, tenant_admins={"acme-admin"}) is allowed
    assert may_administer(role, super_users={"root"}) is (role == "root")


NO_PROXY = "cannot specify originalPrincipal when connecting without valid proxy role."
NAMES_NO_CLIENT = "originalPrincipal must be provided when connecting with a proxy role."
NAMES_A_PROXY = "originalPrincipal cannot be a proxy role."


@pytest.mark.parametrize(
    ("role", "original", "same_allowed", "wrong"),
    [
        ("app", None, False, None),
        ("app", "", False, None),
        ("app", "root", False, NO_PROXY),
        ("app", "app", False, NO_PROXY),
        ("app", "app", True, None),
        ("app", "root", True, NO_PROXY),
        ("proxy", None, False, NAMES_NO_CLIENT),
        ("proxy", "", True, NAMES_NO_CLIENT),
        ("proxy", "app", False, None),
        ("proxy", "proxy", True, NAMES_A_PROXY),
        ("proxy", "another-proxy", False, NAMES_A_PROXY),
    ],
)
def test_proxies_when_they_speak_for_a_role_then_they_have_to_name_it(
    role: str, original: str | None, same_allowed: bool, wrong: str | None
) -> None:
    error = check_principals(role, original, {"proxy", "another-proxy"}, same_allowed=same_allowed)
    assert (error is None) if wrong is None else (str(error) == wrong)


def test_client_that_is_no_proxy_speaks_for_nobody_unless_told_otherwise() -> None:
    assert str(check_principals("app", "app", {"proxy"})) == NO_PROXY


def test_refusals_when_shown_then_are_in_the_words_of_pulsar() -> None:
    readers = NamespacePolicies(granted=Permissions().grant("app", ["consume"]), subscription_auth_mode="Prefix")
    owned = readers.changed(granted=readers.permissions.grant_subscription("s", ["other"]))
    denied = "Unauthorized to validateTopicOperation for operation [SKIP] on topic [persistent://acme/app/t]"
    for policies, role in ((None, "app"), (readers, "other"), (owned, "app")):
        error = denied_on_topic(role, TopicOperation.SKIP, TOPIC, policies, "s")
        assert (type(error), str(error)) == (Unauthorized, denied)
    prefixed = denied_on_topic("app", TopicOperation.SKIP, TOPIC, readers, "s")
    assert isinstance(prefixed, SubscriptionPrefixMissing)
    assert str(prefixed) == (
        "Failed to create consumer - The subscription name needs to be prefixed by the authentication role, "
        "like app-xxxx for topic: persistent://acme/app/t"
    )
    namespace = denied_on_namespace(NamespaceOperation.GET_TOPICS, NamespaceName("acme", "app"))
    assert type(namespace) is AuthorizationError
    assert str(namespace) == (
        "Unauthorized to validateNamespaceOperation for operation [GET_TOPICS] on namespace [acme/app]"
    )


def test_what_operators_write_when_it_means_nothing_then_is_refused_with_what_would() -> None:
    assert check_actions(["produce", "consume"]) == [Action.PRODUCE, Action.CONSUME]
    with pytest.raises(InvalidRequest, match=r"Unknown actions read; .*consume"):
        check_actions(["produce", "read"])
    with pytest.raises(InvalidRequest, match="should not be empty"):
        check_actions([])
    assert check_roles(["a"]) == ["a"]
    for roles in ([], [""], ["a", " "]):
        with pytest.raises(InvalidRequest, match="Roles should not be empty"):
            check_roles(roles)
    assert [check_subscription_auth_mode(mode) for mode in (None, "None", "Prefix")] == ["None", "None", "Prefix"]
    with pytest.raises(InvalidRequest, match="None or Prefix, not 'prefix'"):
        check_subscription_auth_mode("prefix")
