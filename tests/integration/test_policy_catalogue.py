"""Every policy of the catalogue is set, read and removed through REST, the admin client and the command line."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from click.testing import CliRunner

from interpulse.cli.admin.admin import admin as command_line
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.policies import catalogue as kinds
from interpulse.model.policies.catalogue import NAMESPACE_CALLS, TOPIC_CALLS, PolicyAtLevel
from interpulse.model.policies.policy_kinds import Kind
from interpulse.model.policies.policy_records import (
    AutoTopicCreation,
    DelayedDelivery,
    DispatchRate,
    InactiveTopicPolicies,
    Persistence,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)
from tests.support.rest_broker import RestBroker
from tests.support.rest_client import call

NAMESPACE, TOPIC = "public/default", "public/default/x"
VALUES: dict[Kind, Any] = {
    **dict.fromkeys((kinds.COUNT, kinds.SECONDS, kinds.MINUTES, kinds.INTERVAL, kinds.BYTES, kinds.MESSAGE_SIZE), 7),
    kinds.FLAG: True,
    kinds.SUBSCRIPTION_CREATION: False,
    kinds.STRATEGY: "FULL",
    kinds.TOPIC_STRATEGY: "FULL",
    kinds.TYPES: frozenset({"Shared"}),
    kinds.TOPIC_CLUSTERS: ["standalone"],
    kinds.RETENTION: RetentionPolicies(1, 2),
    kinds.INACTIVE_TOPICS: InactiveTopicPolicies(),
    kinds.TOPIC_CREATION: AutoTopicCreation(True, "partitioned", 3),
    kinds.PUBLISH_RATE: PublishRate(1, 2),
    kinds.DISPATCH_RATE: DispatchRate(1, 2, True, 3),
    kinds.SUBSCRIBE_RATE: SubscribeRate(1, 2),
    kinds.DELAYED_DELIVERY: DelayedDelivery(True, 5, 6),
    kinds.PERSISTENCE: Persistence(1, 1, 1),
}
OPTIONS = {
    kinds.FLAG: "--enable",
    kinds.SUBSCRIPTION_CREATION: "--disable",
    kinds.TOPIC_STRATEGY: "-s FULL",
    kinds.TYPES: "-t Shared",
    kinds.TOPIC_CLUSTERS: "-c standalone",
    kinds.RETENTION: "-t 1m -s 2M",
    kinds.INACTIVE_TOPICS: "-e -t 60 -m delete_when_no_subscriptions",
    kinds.PUBLISH_RATE: "-m 1 -b 2",
    kinds.DISPATCH_RATE: "-md 1 -bd 2 -rp -dt 3",
    kinds.SUBSCRIBE_RATE: "-sr 1 -st 2",
    kinds.DELAYED_DELIVERY: "-e -t 5s -md 6s",
    kinds.PERSISTENCE: "-e 1 -w 1 -a 1",
}
NUMBER_OPTIONS = {kinds.MINUTES: ["-t"], kinds.INTERVAL: ["-i"], kinds.BYTES: ["-t"], kinds.MESSAGE_SIZE: ["-m"]}
EMPTY_ANSWERS = {"()": b"[]", "0": b"0", "False": b"false"}
LEVELS = [
    *(
        pytest.param(entry, "namespaces", f"namespaces/{NAMESPACE}", id=f"namespace-{name}")
        for name, entry in NAMESPACE_CALLS.items()
    ),
    *(
        pytest.param(entry, "topicPolicies", f"persistent/{TOPIC}", id=f"topic-{name}")
        for name, entry in TOPIC_CALLS.items()
    ),
]


@pytest.mark.parametrize(("entry", "group", "root"), LEVELS)
async def test_policy_is_set_read_and_removed_over_rest(
    broker: RestBroker, entry: PolicyAtLevel, group: str, root: str
) -> None:
    level, path = entry.level, f"{root}/{entry.level.path}"
    await call(broker.web_url, "PUT", f"persistent/{TOPIC}")
    unset = await call(broker.web_url, "GET", path)
    sent = entry.policy.kind.write(VALUES[entry.policy.kind])
    query, body = (f"?{level.path}={sent}", None) if level.in_query else ("", sent)
    assert (await call(broker.web_url, level.method, f"{path}{query}", body)).status == 204
    assert (await call(broker.web_url, "GET", path)).json == sent
    if level.removable:
        assert (await call(broker.web_url, "DELETE", path)).status == 204
        again = await call(broker.web_url, "GET", path)
        assert (again.status, again.body) == (unset.status, unset.body)
        assert (unset.status, unset.body) == (level.unset_status, EMPTY_ANSWERS.get(str(level.unset), b""))


@pytest.mark.parametrize(("entry", "group", "root"), LEVELS)
async def test_policy_is_set_read_and_removed_by_the_admin_client(
    broker: RestBroker, entry: PolicyAtLevel, group: str, root: str
) -> None:
    await call(broker.web_url, "PUT", f"persistent/{TOPIC}")
    name, value = entry.policy.attribute, VALUES[entry.policy.kind]
    async with AdminClient(broker.web_url) as client:
        if group == "namespaces":
            await client.namespaces.set_policy(NAMESPACE, name, value)
            assert await client.namespaces.policy(NAMESPACE, name) == value
            if entry.level.removable:
                await client.namespaces.remove_policy(NAMESPACE, name)
                assert (await client.namespaces.policy(NAMESPACE, name) or None) is None
        else:
            await client.topic_policies.set(TOPIC, name, value)
            assert await client.topic_policies.get(TOPIC, name) == value
            if entry.level.removable:
                await client.topic_policies.remove(TOPIC, name)
                assert (await client.topic_policies.get(TOPIC, name) or None) is None


@pytest.mark.parametrize(("entry", "group", "root"), LEVELS)
async def test_policy_is_set_read_and_removed_by_commands(
    broker: RestBroker, monkeypatch: pytest.MonkeyPatch, entry: PolicyAtLevel, group: str, root: str
) -> None:
    await call(broker.web_url, "PUT", f"persistent/{TOPIC}")
    monkeypatch.setenv("webServiceUrl", broker.web_url)
    kind, target = entry.policy.kind, NAMESPACE if group == "namespaces" else TOPIC

    async def run(where: str, *arguments: str) -> str:
        result = await asyncio.to_thread(CliRunner().invoke, command_line, (where, *arguments))
        assert result.exit_code == 0, result.output
        return result.output

    for command in entry.level.commands:
        for where in command.groups:
            unset = await run(where, f"get-{command.noun}", target)
            options = OPTIONS.get(kind) or f"{(command.options or NUMBER_OPTIONS[kind])[0]} 7"
            await run(where, f"set-{command.noun}", target, *options.split())
            assert await run(where, f"get-{command.noun}", target) != unset
            if entry.level.removable:
                await run(where, f"remove-{command.noun}", target)
                assert await run(where, f"get-{command.noun}", target) == unset
