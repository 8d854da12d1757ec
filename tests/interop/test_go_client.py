"""Pulsar's Go client and Go admin client, each scenario on our broker and on a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpulse.testing import InProcessBroker
from tests.interop import go_program
from tests.interop.real_pulsar import Address

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SCENARIOS = [
    "compression",
    "chunks",
    "access_modes",
    "names_are_unique",
    "deduplication",
    "deduplication_of_batches",
    "message_fields",
    "partitions",
    "terminated",
    "too_large",
    "transactions_refused",
    "exclusive_batched",
    "exclusive_unbatched",
    "shared_batched",
    "shared_unbatched",
    "failover_batched",
    "failover_unbatched",
    "key_shared_batched",
    "key_shared_unbatched",
    "exclusive_is_busy",
    "failover_takes_over",
    "key_shared_keeps_order",
    "key_shared_sticky_ranges",
    "cumulative_acknowledgement",
    "batch_index_acknowledgement",
    "acknowledgement_with_response",
    "negative_acknowledgement",
    "dead_letters",
    "retry_letters",
    "delayed_delivery",
    "zero_queue",
    "several_topics",
    "pattern",
    "seek",
    "unsubscribe",
    "subscription_survives_unloading",
    "reader",
    "reader_inside_a_batch",
    "reader_seek",
    "reader_of_partitions",
    "table_view",
    "table_view_of_bytes",
    "schema_avro",
    "schema_json",
    "schema_primitives",
    "schema_bytes",
    "schema_versions",
    "schema_incompatible",
    "admin_tenants_and_namespaces",
    "admin_topics",
    "admin_subscriptions",
    "admin_namespace_policies",
    "admin_brokers_and_clusters",
    "admin_namespace_resources",
    "admin_topic_resources",
    "admin_owned_bundles",
]
NOT_ON_REAL = ("key_shared_keeps_order",)
"""While consumers leave, a real Pulsar sends a later message of a key before an earlier one now and then."""


@pytest.fixture(scope="module")
def on_ours(program: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    with InProcessBroker(tmp_path_factory.mktemp("broker")) as broker:
        return go_program.outcomes(program, broker.service_url, broker.web_url)


@pytest.fixture(scope="module")
def on_real(program: Path, real_pulsar: Address) -> dict[str, str]:
    return go_program.outcomes(program, real_pulsar.service_url, real_pulsar.web_url)


@pytest.mark.parametrize(
    ("broker", "scenario"),
    [("on_ours", each) for each in SCENARIOS] + [("on_real", each) for each in SCENARIOS if each not in NOT_ON_REAL],
)
def test_go(broker: str, scenario: str, request: pytest.FixtureRequest) -> None:
    outcomes: dict[str, str] = request.getfixturevalue(broker)
    assert outcomes[scenario] == ""


def test_every_scenario_of_the_program_is_a_test_here(on_ours: dict[str, str]) -> None:
    assert sorted(on_ours) == sorted(SCENARIOS)


def test_go_admin_client_is_refused_at_once_what_cannot_be_set(program: Path, tmp_path: Path) -> None:
    with InProcessBroker(tmp_path) as broker:
        outcomes = go_program.outcomes(program, broker.service_url, broker.web_url, "not offered")
    assert outcomes == {"admin_not_offered": ""}
