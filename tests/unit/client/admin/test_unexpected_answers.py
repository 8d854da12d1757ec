"""Every call of the admin client against brokers that answer something else than what was asked for."""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.clusters import ClusterData, ClusterMigration, FailureDomain, TenantInfo
from interpulse.model.errors import PulsarError
from interpulse.model.ids import MessageId
from interpulse.model.isolation import IsolationPolicy
from interpulse.model.policies.policy_records import (
    AutoTopicCreation,
    BacklogQuota,
    InactiveTopicPolicies,
    RetentionPolicies,
)
from interpulse.model.schemas import SchemaInfo, SchemaType
from tests.support.stub_web import Answer, StubWeb

JSON = {"Content-Type": "application/json"}
WRONG_ANSWERS = {
    "nothing": Answer(200, b"", JSON),
    "null": Answer(200, b"null", JSON),
    "a word": Answer(200, b"perhaps", {"Content-Type": "text/plain"}),
    "a number": Answer(200, b"7", JSON),
    "an empty object": Answer(200, b"{}", JSON),
    "an object of other things": Answer(200, b'{"version": [], "partitions": "many", "a": 1}', JSON),
    "a list of numbers": Answer(200, b"[1, 2]", JSON),
    "a web page": Answer(200, b"<html><body>Welcome</body></html>", {"Content-Type": "text/html"}),
    "JSON cut off": Answer(200, b'{"partitions": ', JSON),
}
FAMILIES = (
    "clusters",
    "tenants",
    "namespaces",
    "topics",
    "topic_policies",
    "permissions",
    "schemas",
    "brokers",
    "lookup",
)
ARGUMENTS: dict[str, Any] = {
    "topic": "persistent://a/b/c",
    "topics": ["persistent://a/b/c"],
    "namespace": "a/b",
    "tenant": "a",
    "subscription": "s",
    "cluster": "x",
    "clusters": ["x"],
    "previewed": True,
    "allowed": True,
    "enforced": True,
    "count": 1,
    "partitions": 2,
    "position": MessageId(1, 1),
    "time_ms": 0,
    "older_than_seconds": 1,
    "ledger": 1,
    "entry": 1,
    "number": 1,
    "initial_position": "earliest",
    "actions": ["produce"],
    "roles": ["r"],
    "peers": ["x"],
    "properties": {"a": "b"},
    "records": [],
    "schema": SchemaInfo(SchemaType.STRING, b"", {}),
    "quota": BacklogQuota(),
    "bundle": "0x00000000_0x40000000",
    "ttl_seconds": 1,
}
"""By the name of the parameter; what is not here is a text, or stands in `_argument`."""

VALUES: dict[tuple[str, str], Any] = {
    ("clusters", "value"): FailureDomain(),
    ("clusters", "cluster"): ClusterData(),
    ("clusters", "migration"): ClusterMigration(),
    ("clusters", "policy"): IsolationPolicy(("a/b",), ("x",)),
    ("tenants", "tenant"): TenantInfo(),
    ("namespaces", "policy"): RetentionPolicies(),
    ("namespaces", "policies"): InactiveTopicPolicies(),
    ("topics", "policies"): InactiveTopicPolicies(),
    ("namespaces", "name"): "max_producers",
    ("topic_policies", "name"): "max_producers",
    ("namespaces", "value"): 1,
    ("topic_policies", "value"): 1,
}
OF_ONE_CALL: dict[tuple[str, str, str], Any] = {
    ("namespaces", "set_auto_topic_creation", "policy"): AutoTopicCreation(allowed=True),
    ("namespaces", "set_property", "value"): "x",
}


def _calls() -> Iterator[tuple[str, str]]:
    admin = AdminClient("http://127.0.0.1:1")
    for family in FAMILIES:
        for name, _ in inspect.getmembers(getattr(admin, family), inspect.iscoroutinefunction):
            if not name.startswith("_"):
                yield family, name


def _argument(family: str, name: str, parameter: str) -> Any:
    if (family, name, parameter) in OF_ONE_CALL:
        return OF_ONE_CALL[family, name, parameter]
    return VALUES.get((family, parameter), ARGUMENTS.get(parameter, "x"))


def _required(family: str, name: str, method: Callable[..., Awaitable[Any]]) -> dict[str, Any]:
    parameters = inspect.signature(method).parameters.values()
    return {each.name: _argument(family, name, each.name) for each in parameters if each.default is each.empty}


@pytest.mark.parametrize("given", WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
async def test_calls_when_answered_with_something_else_then_cope_or_raise_an_error_of_the_house(given: Answer) -> None:
    tracebacks: list[str] = []
    silent: list[str] = []
    with StubWeb(otherwise=lambda asked: given) as web:
        async with AdminClient(web.url) as admin:
            for family, name in _calls():
                method = getattr(getattr(admin, family), name)
                try:
                    await method(**_required(family, name, method))
                except PulsarError as error:
                    silent += [] if str(error) else [f"{family}.{name}"]
                except Exception as error:  # noqa: BLE001  # that there are others is what is tested
                    tracebacks.append(f"{family}.{name}: {error!r}")
    assert (tracebacks, silent) == ([], [])
    assert len(web.asked) > 100


@pytest.mark.parametrize("kind", ["nothing", "null", "a word", "a number", "a list of numbers", "a web page"])
async def test_configuration_when_it_is_none_then_the_call_and_the_broker_are_named(kind: str) -> None:
    with StubWeb(otherwise=lambda asked: WRONG_ANSWERS[kind]) as web:
        async with AdminClient(web.url) as admin:
            with pytest.raises(PulsarError, match="/admin/v2/brokers/configuration/runtime") as raised:
                await admin.brokers.runtime_configuration()
    assert web.url in str(raised.value)
