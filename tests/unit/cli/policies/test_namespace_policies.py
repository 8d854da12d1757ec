"""``namespaces set-...``, ``get-...`` and ``remove-...``."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.cli.policies.namespace_policies import POLICY_COMMANDS
from interpulse.model.policies.catalogue import OF_NAMESPACES
from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin, SentBy

ROOT = "/admin/v2/namespaces/t/ns"


def auto(allowed: bool, topic_type: str = "non-partitioned", **more: int) -> dict[str, Any]:
    return {"allowAutoTopicCreation": allowed, "topicType": topic_type, **more}


@pytest.mark.parametrize(
    ("arguments", "method", "target", "body"),
    [
        ("set-auto-topic-creation t/ns -e", "POST", "autoTopicCreation", auto(True)),
        ("set-auto-topic-creation t/ns -d", "POST", "autoTopicCreation", auto(False)),
        (
            "set-auto-topic-creation t/ns --enable --type partitioned --num-partitions 3",
            "POST",
            "autoTopicCreation",
            auto(True, "partitioned", defaultNumPartitions=3),
        ),
        ("remove-auto-topic-creation t/ns", "DELETE", "autoTopicCreation", None),
        (
            "set-auto-subscription-creation t/ns -e",
            "POST",
            "autoSubscriptionCreation",
            {"allowAutoSubscriptionCreation": True},
        ),
        (
            "set-auto-subscription-creation t/ns",
            "POST",
            "autoSubscriptionCreation",
            {"allowAutoSubscriptionCreation": False},
        ),
        ("remove-auto-subscription-creation t/ns", "DELETE", "autoSubscriptionCreation", None),
        ("set-deduplication t/ns --enable", "POST", "deduplication", True),
        ("set-deduplication t/ns --disable", "POST", "deduplication", False),
        ("remove-deduplication t/ns", "DELETE", "deduplication", None),
        (
            "set-retention t/ns -t 3h -s 10M",
            "POST",
            "retention",
            {"retentionTimeInMinutes": 180, "retentionSizeInMB": 10},
        ),
        (
            "set-retention t/ns --size -1 --time -1",
            "POST",
            "retention",
            {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1},
        ),
        ("remove-retention t/ns", "DELETE", "retention", None),
        ("set-message-ttl t/ns -ttl 2m", "POST", "messageTTL", 120),
        ("set-message-ttl t/ns --messageTTL 0", "POST", "messageTTL", 0),
        ("remove-message-ttl t/ns", "DELETE", "messageTTL", None),
        ("set-max-topics-per-namespace t/ns -t 5", "POST", "maxTopicsPerNamespace", 5),
        ("remove-max-topics-per-namespace t/ns", "DELETE", "maxTopicsPerNamespace", None),
        ("set-is-allow-auto-update-schema t/ns -e", "POST", "isAllowAutoUpdateSchema", True),
        (
            "set-is-allow-auto-update-schema t/ns --disable --enable-for-replicator",
            "POST",
            "isAllowAutoUpdateSchema?allowAutoUpdateSchemaWithReplicator=true",
            False,
        ),
        (
            "set-is-allow-auto-update-schema t/ns --disable --enable-for-replicator=false",
            "POST",
            "isAllowAutoUpdateSchema?allowAutoUpdateSchemaWithReplicator=false",
            False,
        ),
        ("set-schema-compatibility-strategy t/ns -c FULL", "PUT", "schemaCompatibilityStrategy", "FULL"),
        ("set-schema-autoupdate-strategy t/ns -c Full", "PUT", "schemaAutoUpdateCompatibilityStrategy", "Full"),
        (
            "set-schema-autoupdate-strategy t/ns -c none",
            "PUT",
            "schemaAutoUpdateCompatibilityStrategy",
            "AlwaysCompatible",
        ),
        (
            "set-schema-autoupdate-strategy t/ns --disabled",
            "PUT",
            "schemaAutoUpdateCompatibilityStrategy",
            "AutoUpdateDisabled",
        ),
        ("set-schema-validation-enforce t/ns -e", "POST", "schemaValidationEnforced", True),
    ],
)
def test_change_when_typed_then_is_asked_for(
    sent_by: SentBy, arguments: str, method: str, target: str, body: Any
) -> None:
    assert sent_by("namespaces", *arguments.split()) == (method, f"{ROOT}/{target}", body)


@pytest.mark.parametrize(
    ("command", "path", "answer", "printed"),
    [
        ("get-auto-topic-creation", "autoTopicCreation", auto(False), None),
        ("get-auto-topic-creation", "autoTopicCreation", None, "null\n"),
        (
            "get-auto-subscription-creation",
            "autoSubscriptionCreation",
            {"allowAutoSubscriptionCreation": True},
            '{\n  "allowAutoSubscriptionCreation" : true\n}\n',
        ),
        ("get-auto-subscription-creation", "autoSubscriptionCreation", None, "null\n"),
        ("get-deduplication", "deduplication", False, "false\n"),
        ("get-deduplication", "deduplication", None, "null\n"),
        (
            "get-retention",
            "retention",
            {"retentionTimeInMinutes": 1, "retentionSizeInMB": -1},
            '{\n  "retentionTimeInMinutes" : 1,\n  "retentionSizeInMB" : -1\n}\n',
        ),
        ("get-retention", "retention", None, "null\n"),
        ("get-message-ttl", "messageTTL", 60, "60\n"),
        ("get-message-ttl", "messageTTL", None, "null\n"),
        ("get-max-topics-per-namespace", "maxTopicsPerNamespace", 0, "0\n"),
        ("get-is-allow-auto-update-schema", "isAllowAutoUpdateSchema", True, "true\n"),
        ("get-schema-compatibility-strategy", "schemaCompatibilityStrategy", "UNDEFINED", "UNDEFINED\n"),
        ("get-schema-autoupdate-strategy", "schemaAutoUpdateCompatibilityStrategy", "Backward", "BACKWARD\n"),
        ("get-schema-autoupdate-strategy", "schemaAutoUpdateCompatibilityStrategy", None, "null\n"),
        ("get-schema-validation-enforce", "schemaValidationEnforced", False, "false\n"),
    ],
)
def test_policy_when_read_then_is_printed(
    web: StubWeb, run_admin: RunAdmin, command: str, path: str, answer: Any, printed: str | None
) -> None:
    web.answer("GET", f"{ROOT}/{path}", answer)
    result = run_admin("namespaces", command, "t/ns")
    assert result.exit_code == 0
    expected = '{\n  "allowAutoTopicCreation" : false,\n  "topicType" : "non-partitioned"\n}\n'
    assert result.stdout == (printed or expected)


@pytest.mark.parametrize(
    ("runtime", "printed"),
    [
        (
            {
                "allowAutoTopicCreation": "false",
                "allowAutoTopicCreationType": "non-partitioned",
                "defaultNumPartitions": "1",
            },
            '{\n  "allowAutoTopicCreation" : false,\n  "topicType" : "non-partitioned"\n}\n',
        ),
        (
            {
                "allowAutoTopicCreation": "true",
                "allowAutoTopicCreationType": "partitioned",
                "defaultNumPartitions": "4",
            },
            '{\n  "allowAutoTopicCreation" : true,\n  "topicType" : "partitioned",\n  "defaultNumPartitions" : 4\n}\n',
        ),
    ],
)
def test_applied_auto_creation_when_broker_does_not_know_it_then_is_worked_out(
    web: StubWeb, run_admin: RunAdmin, runtime: dict[str, str], printed: str
) -> None:
    web.answer("GET", "/admin/v2/brokers/configuration/runtime", runtime)
    assert run_admin("namespaces", "get-auto-topic-creation", "t/ns", "--applied").stdout == printed
    assert web.asked[0].target == f"{ROOT}/autoTopicCreation?applied=true"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("set-auto-topic-creation t/ns", "Need to specify either --enable or --disable"),
        ("set-auto-topic-creation t/ns -e -d", "Need to specify either --enable or --disable"),
        ("set-auto-topic-creation t/ns -e -t partitioned", "Must specify num-partitions > 0"),
        ("set-auto-topic-creation t/ns -e -t partitioned -n 0", "Must specify num-partitions > 0"),
        ("set-auto-topic-creation t/ns -e -t other", "'other' is not one of"),
        ("set-auto-subscription-creation t/ns -e -d", "either --enable or --disable"),
        ("set-deduplication t/ns", "Need to specify either --enable or --disable"),
        ("set-retention t/ns -t 3h", "Missing option '-s'"),
        ("set-retention t/ns -t 3x -s 1M", "valid forms are"),
        ("set-is-allow-auto-update-schema t/ns --enable --enable-for-replicator=false", "needs --disable"),
        ("set-schema-compatibility-strategy t/ns -c Full", "'Full' is not one of"),
        ("set-schema-autoupdate-strategy t/ns", "Need to specify --compatibility"),
        ("set-schema-autoupdate-strategy t/ns -c Sideways", "Need to specify --compatibility"),
    ],
)
def test_change_when_contradictory_then_nothing_is_asked(
    web: StubWeb, run_admin: RunAdmin, arguments: str, words: str
) -> None:
    result = run_admin("namespaces", *arguments.split())
    assert result.exit_code == 2
    assert words in result.stderr
    assert web.asked == []


def test_policies_that_can_be_set_can_be_read_too() -> None:
    names = {command.name or "" for command in POLICY_COMMANDS} | {"get-backlog-quota"}
    assert {name.replace("set-", "get-", 1) for name in names if name.startswith("set-")} <= names


def test_switch_for_replicators_when_given_with_the_old_strategy_then_is_a_call_of_its_own(
    web: StubWeb, run_admin: RunAdmin
) -> None:
    web.answer("GET", f"{ROOT}/isAllowAutoUpdateSchema", False)
    result = run_admin("namespaces", "set-schema-autoupdate-strategy", "t/ns", "-d", "--enable-for-replicator")
    assert (result.exit_code, result.output) == (0, "")
    assert [(asked.method, asked.target, asked.body) for asked in web.asked] == [
        ("GET", f"{ROOT}/isAllowAutoUpdateSchema", None),
        ("POST", f"{ROOT}/isAllowAutoUpdateSchema?allowAutoUpdateSchemaWithReplicator=true", False),
        ("PUT", f"{ROOT}/schemaAutoUpdateCompatibilityStrategy", "AutoUpdateDisabled"),
    ]


def test_switch_for_replicators_when_all_producers_may_then_it_cannot_be_off(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/isAllowAutoUpdateSchema", True)
    result = run_admin("namespaces", "set-schema-autoupdate-strategy", "t/ns", "-d", "--enable-for-replicator=false")
    assert result.exit_code == 1
    assert "meaningless" in result.stderr
    assert len(web.asked) == 1


@pytest.mark.parametrize(("option", "value"), [("", True), ("=true", True), ("=false", False)])
def test_word_about_replicators_when_given_then_is_sent(
    web: StubWeb, run_admin: RunAdmin, option: str, value: bool
) -> None:
    body = auto(False, alwaysAllowForReplicator=value)
    web.answer("GET", f"{ROOT}/autoTopicCreation", body)
    arguments = ("set-auto-topic-creation", "t/ns", "-d", f"--always-allow-for-replicator{option}")
    result = run_admin("namespaces", *arguments)
    assert (result.exit_code, result.output) == (0, "")
    assert [(asked.method, asked.body) for asked in web.asked] == [("POST", body), ("GET", None)]


def test_word_about_replicators_when_the_broker_ignores_it_then_the_command_fails(
    web: StubWeb, run_admin: RunAdmin
) -> None:
    web.answer("GET", f"{ROOT}/autoTopicCreation", auto(False))
    result = run_admin("namespaces", "set-auto-topic-creation", "t/ns", "-d", "--always-allow-for-replicator=false")
    assert result.exit_code == 1
    assert "this broker does not support it" in result.stderr


def publish_rate(messages: int, size: int) -> dict[str, int]:
    return {"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": size}


def dispatch(messages: int, size: int, relative: bool = False, period: int = 1) -> dict[str, Any]:
    return {
        "dispatchThrottlingRateInMsg": messages,
        "dispatchThrottlingRateInByte": size,
        "relativeToPublishRate": relative,
        "ratePeriodInSecond": period,
    }


def subscribe(count: int, period: int) -> dict[str, int]:
    return {"subscribeThrottlingRatePerConsumer": count, "ratePeriodInSecond": period}


def delayed(active: bool, tick: int, longest: int) -> dict[str, Any]:
    return {"tickTime": tick, "active": active, "maxDeliveryDelayInMillis": longest}


def quota(size: int, seconds: int, policy: str) -> dict[str, Any]:
    return {"limit": size, "limitSize": size, "limitTime": seconds, "policy": policy}


SETTING = [
    ("set-publish-rate t/ns -m 5 -b 7", "POST", "publishRate", publish_rate(5, 7)),
    ("set-publish-rate t/ns --msg-publish-rate 5", "POST", "publishRate", publish_rate(5, -1)),
    ("set-dispatch-rate t/ns -md 5 -bd 7 -dt 2 -rp", "POST", "dispatchRate", dispatch(5, 7, True, 2)),
    ("set-dispatch-rate t/ns", "POST", "dispatchRate", dispatch(-1, -1)),
    (
        "set-subscription-dispatch-rate t/ns --msg-dispatch-rate 5 --dispatch-rate-period 3",
        "POST",
        "subscriptionDispatchRate",
        dispatch(5, -1, False, 3),
    ),
    ("set-replicator-dispatch-rate t/ns -md 5 -bd 7 -dt 2", "POST", "replicatorDispatchRate", dispatch(5, 7, False, 2)),
    ("set-subscription-expiration-time t/ns -t 5", "POST", "subscriptionExpirationTime", 5),
    ("set-subscribe-rate t/ns -sr 2 -st 10", "POST", "subscribeRate", subscribe(2, 10)),
    ("set-subscribe-rate t/ns --subscribe-rate 2", "POST", "subscribeRate", subscribe(2, 30)),
    ("set-max-producers-per-topic t/ns -p 5", "POST", "maxProducersPerTopic", 5),
    ("set-max-consumers-per-topic t/ns -c 5", "POST", "maxConsumersPerTopic", 5),
    ("set-max-consumers-per-subscription t/ns -c 5", "POST", "maxConsumersPerSubscription", 5),
    ("set-max-subscriptions-per-topic t/ns -m 0", "POST", "maxSubscriptionsPerTopic", 0),
    ("set-max-unacked-messages-per-consumer t/ns -c 5", "POST", "maxUnackedMessagesPerConsumer", 5),
    ("set-max-unacked-messages-per-subscription t/ns -c 5", "POST", "maxUnackedMessagesPerSubscription", 5),
    ("set-delayed-delivery t/ns -e", "POST", "delayedDelivery", delayed(True, 1000, 0)),
    ("set-delayed-delivery t/ns -d -t 2s -md 3h", "POST", "delayedDelivery", delayed(False, 2000, 10_800_000)),
    ("set-compaction-threshold t/ns -t 10M", "PUT", "compactionThreshold", 10_485_760),
    ("set-encryption-required t/ns -e", "POST", "encryptionRequired", True),
    ("set-encryption-required t/ns --disable", "POST", "encryptionRequired", False),
    (
        "set-subscription-types-enabled t/ns -t Shared,Failover",
        "POST",
        "subscriptionTypesEnabled",
        ["Failover", "Shared"],
    ),
    (
        "set-backlog-quota t/ns -l 10M -p producer_exception",
        "POST",
        "backlogQuota?backlogQuotaType=destination_storage",
        quota(10_485_760, -1, "producer_exception"),
    ),
    (
        "set-backlog-quota t/ns -lt 3h -t message_age --policy consumer_backlog_eviction",
        "POST",
        "backlogQuota?backlogQuotaType=message_age",
        quota(-1, 10_800, "consumer_backlog_eviction"),
    ),
    ("set-deduplication-snapshot-interval t/ns -i 60", "POST", "deduplicationSnapshotInterval", 60),
    ("remove-deduplication-snapshot-interval t/ns", "POST", "deduplicationSnapshotInterval", None),
    ("remove-backlog-quota t/ns", "DELETE", "backlogQuota?backlogQuotaType=destination_storage", None),
    ("remove-backlog-quota t/ns -t message_age", "DELETE", "backlogQuota?backlogQuotaType=message_age", None),
    ("remove-publish-rate t/ns", "DELETE", "publishRate", None),
    ("remove-max-producers-per-topic t/ns", "DELETE", "maxProducersPerTopic", None),
    ("remove-compaction-threshold t/ns", "DELETE", "compactionThreshold", None),
]


@pytest.mark.parametrize(("arguments", "method", "target", "body"), SETTING, ids=[row[0] for row in SETTING])
def test_catalogued_policy_is_asked_for(sent_by: SentBy, arguments: str, method: str, target: str, body: Any) -> None:
    assert sent_by("namespaces", *arguments.split()) == (method, f"{ROOT}/{target}", body)


@pytest.mark.parametrize(
    ("command", "path", "answer", "printed"),
    [
        ("get-max-producers-per-topic", "maxProducersPerTopic", 5, "5\n"),
        ("get-max-producers-per-topic", "maxProducersPerTopic", None, "null\n"),
        ("get-encryption-required", "encryptionRequired", True, "true\n"),
        (
            "get-publish-rate",
            "publishRate",
            publish_rate(5, -1),
            '{\n  "publishThrottlingRateInMsg" : 5,\n  "publishThrottlingRateInByte" : -1\n}\n',
        ),
        (
            "get-delayed-delivery",
            "delayedDelivery",
            delayed(True, 1000, 0),
            '{\n  "tickTime" : 1000,\n  "active" : true,\n  "maxDeliveryDelayInMillis" : 0\n}\n',
        ),
        ("get-subscription-types-enabled", "subscriptionTypesEnabled", ["Shared"], '[ "Shared" ]\n'),
        ("get-subscription-types-enabled", "subscriptionTypesEnabled", [], "[ ]\n"),
        (
            "get-backlog-quotas",
            "backlogQuotaMap",
            {"message_age": quota(-1, 60, "producer_exception")},
            "message_age    BacklogQuotaImpl(limit=-1, limitSize=-1, limitTime=60, policy=producer_exception)\n",
        ),
        ("get-backlog-quotas", "backlogQuotaMap", {}, ""),
    ],
)
def test_catalogued_policy_is_printed(
    web: StubWeb, run_admin: RunAdmin, command: str, path: str, answer: Any, printed: str
) -> None:
    web.answer("GET", f"{ROOT}/{path}", answer)
    result = run_admin("namespaces", command, "t/ns")
    assert (result.exit_code, result.stdout) == (0, printed)


def test_quotas_when_asked_for_as_json_then_are_documents(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/backlogQuotaMap", {"message_age": quota(-1, 60, "producer_exception")})
    result = run_admin("namespaces", "get-backlog-quotas", "t/ns", "-o", "json")
    assert '"limitTime": 60' in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("set-max-producers-per-topic t/ns", "Missing option '-p'"),
        ("set-max-producers-per-topic t/ns -p many", "'many' is not a valid integer"),
        ("set-delayed-delivery t/ns", "Need to specify either --enable or --disable"),
        ("set-delayed-delivery t/ns -e -t soon", "'soon' is not a time"),
        ("set-compaction-threshold t/ns -t 10X", "'10X' is not a size"),
        ("set-subscription-types-enabled t/ns -t Shared,Nope", "Illegal subscription type Nope"),
        ("set-backlog-quota t/ns -l 10M", "Missing option '-p'"),
        ("set-backlog-quota t/ns -l 10M -p drop", "'drop' is not one of"),
        ("set-backlog-quota t/ns -lt 10 -p producer_exception", "needs -l/--limit"),
        ("set-backlog-quota t/ns -l 10M -t message_age -p producer_exception", "needs -lt/--limitTime"),
        ("set-backlog-quota t/ns -l 10M -t age -p producer_exception", "'age' is not one of"),
    ],
)
def test_contradictory_catalogued_policy_asks_nothing(
    web: StubWeb, run_admin: RunAdmin, arguments: str, words: str
) -> None:
    result = run_admin("namespaces", *arguments.split())
    assert (result.exit_code, web.asked) == (2, [])
    assert words in result.stderr


def test_catalogued_policies_that_can_be_set_can_be_removed() -> None:
    nouns = {form.noun for entry in OF_NAMESPACES for form in entry.level.commands}
    unremovable = {"encryption-required"}
    names = {command.name or "" for command in POLICY_COMMANDS}
    assert {f"{verb}-{noun}" for noun in nouns for verb in ("set", "get")} <= names
    assert {f"remove-{noun}" for noun in nouns} - names <= {f"remove-{noun}" for noun in nouns if noun in unremovable}
