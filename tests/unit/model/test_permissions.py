"""Grants: Pulsar's JSON in and out, and what is left after granting and revoking."""

from __future__ import annotations

import pytest

from interpulse.model.names import TopicName
from interpulse.model.permissions import NO_PERMISSIONS, Permissions, Principal

TOPIC = TopicName.parse("persistent://t/n/a")
PARTITION = TOPIC.partition(1)

JSON = {
    "namespace_auth": {"app": ["consume", "produce"]},
    "destination_auth": {"persistent://t/n/a": {"other": ["produce"]}},
    "subscription_auth_roles": {"mine": ["app"]},
}


def test_permissions_when_read_and_written_then_are_the_same() -> None:
    assert Permissions.from_json(JSON).to_json() == JSON
    assert Permissions.from_json({}) == Permissions.from_json(dict.fromkeys(JSON)) == NO_PERMISSIONS


@pytest.mark.parametrize(
    "body",
    [
        {"namespace_auth": []},
        {"namespace_auth": {"app": "produce"}},
        {"namespace_auth": {"app": [1]}},
        {"destination_auth": "all"},
        {"destination_auth": {"persistent://t/n/a": ["produce"]}},
        {"subscription_auth_roles": {"mine": "app"}},
    ],
)
def test_permissions_when_of_another_form_then_are_refused(body: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(body))):
        Permissions.from_json(body)


def test_grant_on_a_base_name_then_holds_for_its_partitions_and_not_the_other_way_round() -> None:
    granted = NO_PERMISSIONS.grant_topic([TOPIC], "app", ["produce"]).grant_topic([PARTITION], "one", ["consume"])
    assert granted.on_topic(PARTITION, "app") == {"produce"}
    assert granted.on_topic(TOPIC, "one") == set()
    assert granted.granted_on(PARTITION) == {"app": {"produce"}, "one": {"consume"}}


def test_grant_again_then_replaces_what_the_role_had() -> None:
    granted = NO_PERMISSIONS.grant("app", ["produce"]).grant("app", ["consume"])
    assert granted.on_topic(TOPIC, "app") == {"consume"}
    on_topic = NO_PERMISSIONS.grant_topic([TOPIC], "app", ["produce"]).grant_topic([TOPIC], "app", ["consume"])
    assert on_topic.on_topic(TOPIC, "app") == {"consume"}


def test_grant_on_namespace_and_topic_then_both_count() -> None:
    granted = NO_PERMISSIONS.grant("app", ["produce"]).grant_topic([TOPIC], "app", ["consume"])
    assert granted.on_topic(TOPIC, "app") == {"produce", "consume"}
    assert granted.revoke("app").on_topic(TOPIC, "app") == {"consume"}
    assert granted.revoke_topic([TOPIC], "app").on_topic(TOPIC, "app") == {"produce"}
    assert granted.revoke_topic([TOPIC], "app").topics == {}


def test_subscription_when_its_last_role_is_taken_then_is_open_again() -> None:
    granted = NO_PERMISSIONS.grant_subscription("s", ["a", "b"]).revoke_subscription("s", "a")
    assert granted.subscriptions == {"s": {"b"}}
    assert granted.revoke_subscription("s", "b").subscriptions == {"s": set()}


def test_principal_behind_a_proxy_then_both_are_asked_about() -> None:
    assert Principal("app").roles == ("app",)
    assert Principal("proxy", "app").roles == ("proxy", "app")
