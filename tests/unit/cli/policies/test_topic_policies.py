"""The policies of topics on the command line, and those of namespaces that share their options."""

from typing import Any

import pytest

from interpulse.cli.policies.topic_policies import POLICY_COMMANDS, topic_policies
from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin, SentBy

TARGETS = {
    "namespaces": ("t/ns", "/admin/v2/namespaces/t/ns"),
    "topics": ("t/ns/a", "/admin/v2/persistent/t/ns/a"),
}
NO_SUBSCRIPTIONS, CAUGHT_UP = "delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"


def body(mode: str, seconds: int, enabled: bool) -> dict[str, Any]:
    return {"inactiveTopicDeleteMode": mode, "maxInactiveDurationSeconds": seconds, "deleteWhileInactive": enabled}


@pytest.mark.parametrize("group", TARGETS)
@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (f"-e -t 10s -m {NO_SUBSCRIPTIONS}", body(NO_SUBSCRIPTIONS, 10, True)),
        (f"-d -t 5h -m {CAUGHT_UP}", body(CAUGHT_UP, 18_000, False)),
        (
            f"--enable-delete-while-inactive --max-inactive-duration 60 --delete-mode {CAUGHT_UP}",
            body(CAUGHT_UP, 60, True),
        ),
        (
            f"--disable-delete-while-inactive --max-inactive-duration 1m --delete-mode {CAUGHT_UP}",
            body(CAUGHT_UP, 60, False),
        ),
    ],
)
def test_inactive_topics_when_set_then_all_three_are_sent(
    sent_by: SentBy, group: str, options: str, sent: dict[str, Any]
) -> None:
    name, root = TARGETS[group]
    assert sent_by(group, "set-inactive-topic-policies", name, *options.split()) == (
        "POST",
        f"{root}/inactiveTopicPolicies",
        sent,
    )


@pytest.mark.parametrize("group", TARGETS)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (f"-t 10s -m {NO_SUBSCRIPTIONS}", "enable-delete-while-inactive or disable-delete-while-inactive"),
        (f"-e -d -t 10s -m {NO_SUBSCRIPTIONS}", "enable-delete-while-inactive or disable-delete-while-inactive"),
        (f"-e -m {NO_SUBSCRIPTIONS}", "--max-inactive-duration"),
        ("-e -t 10s", "--delete-mode"),
        ("-e -t 10s -m never", CAUGHT_UP),
        (f"-e -t soon -m {NO_SUBSCRIPTIONS}", "soon"),
    ],
)
def test_inactive_topics_when_options_do_not_fit_then_nothing_is_sent(
    web: StubWeb, run_admin: RunAdmin, group: str, options: str, said: str
) -> None:
    result = run_admin(group, "set-inactive-topic-policies", TARGETS[group][0], *options.split())
    assert (result.exit_code, web.asked) == (2, [])
    assert said in result.stderr


PRINTED = """{
  "inactiveTopicDeleteMode" : "delete_when_no_subscriptions",
  "maxInactiveDurationSeconds" : 60,
  "deleteWhileInactive" : true
}
"""


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ("namespaces get-inactive-topic-policies t/ns", "/admin/v2/namespaces/t/ns/inactiveTopicPolicies"),
        (
            "topics get-inactive-topic-policies t/ns/a",
            "/admin/v2/persistent/t/ns/a/inactiveTopicPolicies?applied=false",
        ),
        (
            "topics get-inactive-topic-policies t/ns/a -ap",
            "/admin/v2/persistent/t/ns/a/inactiveTopicPolicies?applied=true",
        ),
        (
            "topics get-inactive-topic-policies non-persistent://t/ns/a --applied",
            "/admin/v2/non-persistent/t/ns/a/inactiveTopicPolicies?applied=true",
        ),
    ],
)
@pytest.mark.parametrize(("answer", "printed"), [(body(NO_SUBSCRIPTIONS, 60, True), PRINTED), (None, "null\n")])
def test_inactive_topics_when_asked_for_then_are_printed_as_pulsar_admin_does(
    web: StubWeb, run_admin: RunAdmin, arguments: str, target: str, answer: Any, printed: str
) -> None:
    web.answer("GET", target.partition("?")[0], answer)
    result = run_admin(*arguments.split())
    assert (result.exit_code, result.output, web.last.target) == (0, printed, target)


@pytest.mark.parametrize("group", TARGETS)
def test_inactive_topics_when_removed_then_is_asked_for(web: StubWeb, run_admin: RunAdmin, group: str) -> None:
    name, root = TARGETS[group]
    assert run_admin(group, "remove-inactive-topic-policies", name).exit_code == 0
    assert (web.last.method, web.last.target) == ("DELETE", f"{root}/inactiveTopicPolicies")


T = "/admin/v2/persistent/t/ns/a"
DISPATCH = {
    "dispatchThrottlingRateInMsg": 5,
    "dispatchThrottlingRateInByte": -1,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 1,
}
QUOTA = {"limit": 100, "limitSize": 100, "limitTime": -1, "policy": "producer_exception"}
OF_BOTH = [
    (
        "set-retention t/ns/a -t 3h -s 10M",
        "POST",
        "retention",
        {"retentionTimeInMinutes": 180, "retentionSizeInMB": 10},
    ),
    ("set-retention t/ns/a -t -1 -s -1", "POST", "retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}),
    ("set-message-ttl t/ns/a -t 2m", "POST", "messageTTL?messageTTL=120", None),
    ("set-deduplication t/ns/a -e", "POST", "deduplicationEnabled", True),
    ("set-dispatch-rate t/ns/a -md 5", "POST", "dispatchRate", DISPATCH),
    ("set-subscription-dispatch-rate t/ns/a -md 5", "POST", "subscriptionDispatchRate", DISPATCH),
    ("set-replicator-dispatch-rate t/ns/a -md 5", "POST", "replicatorDispatchRate", DISPATCH),
    ("set-max-producers t/ns/a -p 5", "POST", "maxProducers", 5),
    ("set-max-consumers t/ns/a -c 5", "POST", "maxConsumers", 5),
    ("set-max-consumers-per-subscription t/ns/a -c 5", "POST", "maxConsumersPerSubscription", 5),
    ("set-max-unacked-messages-per-consumer t/ns/a -m 5", "POST", "maxUnackedMessagesOnConsumer", 5),
    ("set-max-unacked-messages-per-subscription t/ns/a -m 5", "POST", "maxUnackedMessagesOnSubscription", 5),
    ("set-max-message-size t/ns/a -m 100K", "POST", "maxMessageSize", 102_400),
    ("set-compaction-threshold t/ns/a -t 10M", "POST", "compactionThreshold", 10_485_760),
    ("set-subscription-types-enabled t/ns/a -t Shared", "POST", "subscriptionTypesEnabled", ["Shared"]),
    (
        "set-auto-subscription-creation t/ns/a -d",
        "POST",
        "autoSubscriptionCreation",
        {"allowAutoSubscriptionCreation": False},
    ),
    ("set-schema-compatibility-strategy t/ns/a -c BACKWARD", "PUT", "schemaCompatibilityStrategy", "BACKWARD"),
    (
        "set-backlog-quota t/ns/a -l 100 -p producer_exception",
        "POST",
        "backlogQuota?backlogQuotaType=destination_storage",
        QUOTA,
    ),
    ("remove-backlog-quota t/ns/a", "DELETE", "backlogQuota?backlogQuotaType=destination_storage", None),
    ("set-deduplication-snapshot-interval t/ns/a -i 60", "POST", "deduplicationSnapshotInterval", 60),
    ("remove-max-producers t/ns/a", "DELETE", "maxProducers", None),
]


@pytest.mark.parametrize("group", ["topics", "topicPolicies"])
@pytest.mark.parametrize(("arguments", "method", "target", "sent"), OF_BOTH, ids=[row[0] for row in OF_BOTH])
def test_change_when_typed_under_either_name_then_is_asked_for(
    sent_by: SentBy, group: str, arguments: str, method: str, target: str, sent: Any
) -> None:
    assert sent_by(group, *arguments.split()) == (method, f"{T}/{target}", sent)


@pytest.mark.parametrize(
    ("arguments", "method", "target", "sent"),
    [
        ("topics set-max-subscriptions t/ns/a -m 5", "POST", "maxSubscriptionsPerTopic", 5),
        ("topics set-max-unacked-messages-on-consumer t/ns/a -m 5", "POST", "maxUnackedMessagesOnConsumer", 5),
        ("topics set-max-unacked-messages-on-subscription t/ns/a -m 5", "POST", "maxUnackedMessagesOnSubscription", 5),
        ("topics set-schema-validation-enforce t/ns/a -e", "POST", "schemaValidationEnforced", True),
        ("topics enable-deduplication t/ns/a", "POST", "deduplicationEnabled", True),
        ("topics disable-deduplication t/ns/a", "POST", "deduplicationEnabled", False),
        ("topicPolicies set-replication-clusters t/ns/a -c a,b", "POST", "replication", ["a", "b"]),
        ("topicPolicies set-replication-clusters t/ns/a -c a -g", "POST", "replication?isGlobal=true", ["a"]),
        ("topicPolicies remove-replication-clusters t/ns/a", "DELETE", "replication", None),
        ("topicPolicies set-max-subscriptions-per-topic t/ns/a -s 5", "POST", "maxSubscriptionsPerTopic", 5),
        ("topicPolicies delete t/ns/a", "DELETE", "policies", None),
        ("topicPolicies set-subscription-expiration-time t/ns/a -t 5", "POST", "subscriptionExpirationTime", 5),
        (
            "topicPolicies set-replicator-dispatch-rate t/ns/a -md 5 -g",
            "POST",
            "replicatorDispatchRate?isGlobal=true",
            DISPATCH,
        ),
        ("topicPolicies set-max-producers t/ns/a -p 5 -g", "POST", "maxProducers?isGlobal=true", 5),
        ("topicPolicies set-message-ttl t/ns/a -t 5 --global", "POST", "messageTTL?isGlobal=true&messageTTL=5", None),
        ("topicPolicies remove-max-producers t/ns/a -g", "DELETE", "maxProducers?isGlobal=true", None),
    ],
)
def test_change_when_only_one_of_the_two_has_it_then_is_asked_for(
    sent_by: SentBy, arguments: str, method: str, target: str, sent: Any
) -> None:
    assert sent_by(*arguments.split()) == (method, f"{T}/{target}", sent)


@pytest.mark.parametrize(
    ("arguments", "target", "answer", "printed"),
    [
        ("topics get-max-producers t/ns/a", "maxProducers?applied=false", 5, "5\n"),
        ("topics get-deduplication-enabled t/ns/a", "deduplicationEnabled?applied=false", True, "true\n"),
        ("topicPolicies get-replication-clusters t/ns/a -ap", "replication?applied=true", ["a"], '[ "a" ]\n'),
        ("topicPolicies get-max-producers t/ns/a -ap", "maxProducers?applied=true", 5, "5\n"),
        ("topicPolicies get-max-producers t/ns/a -g", "maxProducers?applied=false&isGlobal=true", None, "null\n"),
        (
            "topics get-schema-compatibility-strategy t/ns/a",
            "schemaCompatibilityStrategy?applied=false",
            "FULL",
            "FULL\n",
        ),
        (
            "topics get-auto-subscription-creation t/ns/a",
            "autoSubscriptionCreation?applied=false",
            {"allowAutoSubscriptionCreation": False},
            '{\n  "allowAutoSubscriptionCreation" : false\n}\n',
        ),
        (
            "topics get-backlog-quotas t/ns/a -ap",
            "backlogQuotaMap?applied=true",
            {"destination_storage": QUOTA},
            "destination_storage    BacklogQuotaImpl(limit=100, limitSize=100, limitTime=-1, policy=producer_exception)"
            "\n",
        ),
        ("topicPolicies get-backlog-quota t/ns/a", "backlogQuotaMap?applied=false", {}, ""),
    ],
)
def test_policy_when_read_then_is_printed(
    web: StubWeb, run_admin: RunAdmin, arguments: str, target: str, answer: Any, printed: str
) -> None:
    web.answer("GET", f"{T}/{target.partition('?')[0]}", answer)
    result = run_admin(*arguments.split())
    assert (result.exit_code, result.stdout, web.last.target) == (0, printed, f"{T}/{target}")


def test_commands_when_they_can_be_set_then_can_be_read_and_taken_away() -> None:
    for names in ({command.name or "" for command in POLICY_COMMANDS}, set(topic_policies.commands)):
        nouns = {name.removeprefix("set-") for name in names if name.startswith("set-")}
        read = {name.removeprefix("get-").replace("quotas", "quota") for name in names if name.startswith("get-")}
        taken_away = {name.removeprefix("remove-") for name in names if name.startswith("remove-")}
        assert read - {"deduplication-enabled"} == nouns  # an older name of get-deduplication
        assert taken_away == nouns - {"schema-validation-enforce"}
