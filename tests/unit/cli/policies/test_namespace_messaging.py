"""``namespaces set-...``, ``get-...`` and ``remove-...`` of rates, limits and quotas."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.cli.policies.namespace_messaging import MESSAGING_COMMANDS
from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin, SentBy

ROOT = "/admin/v2/namespaces/t/ns"


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
def test_change_when_typed_then_is_asked_for(
    sent_by: SentBy, arguments: str, method: str, target: str, body: Any
) -> None:
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
def test_policy_when_read_then_is_printed(
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
def test_change_when_contradictory_then_nothing_is_asked(
    web: StubWeb, run_admin: RunAdmin, arguments: str, words: str
) -> None:
    result = run_admin("namespaces", *arguments.split())
    assert (result.exit_code, web.asked) == (2, [])
    assert words in result.stderr


def test_commands_when_they_can_be_set_then_can_be_read_and_taken_away() -> None:
    names = {command.name or "" for command in MESSAGING_COMMANDS}
    nouns = {name.removeprefix("set-") for name in names if name.startswith("set-")}
    plural = {"backlog-quota": "backlog-quotas"}
    assert {f"get-{plural.get(noun, noun)}" for noun in nouns} <= names
    assert {f"remove-{noun}" for noun in nouns - {"encryption-required"}} <= names
