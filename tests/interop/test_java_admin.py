"""What the official Java admin client gets from our broker is what it gets from a real Pulsar."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from interpulse.testing import InProcessBroker
from tests.interop.conftest import JavaCheck
from tests.interop.real_pulsar import Address
from tests.scripts.rest_player import CONVERSATIONS

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_java_admin_client_cannot_tell_the_brokers_apart(
    real_pulsar: Address, java_check: JavaCheck, tmp_path: Path
) -> None:
    unique = uuid.uuid4().hex[:8]
    real = java_check("Admin.java", *real_pulsar, "standalone", unique)
    with InProcessBroker(tmp_path) as broker:
        ours = java_check("Admin.java", broker.service_url, broker.web_url, "standalone", unique)
    assert ours.splitlines() == real.splitlines()


def test_java_admin_client_administers_both_alike(real_pulsar: Address, java_check: JavaCheck, tmp_path: Path) -> None:
    """Clusters, tenants, namespaces, and the clusters of single topics."""
    unique = uuid.uuid4().hex[:8]
    real = java_check("Administration.java", real_pulsar.web_url, "standalone", unique)
    with InProcessBroker(tmp_path) as broker:
        ours = java_check("Administration.java", broker.web_url, "standalone", unique)
    assert ours.splitlines() == real.splitlines()


def test_java_admin_client_finds_the_same_policies_on_both(
    real_pulsar: Address, java_check: JavaCheck, tmp_path: Path
) -> None:
    """Rates, limits and quotas of namespaces and topics: set, read, taken away."""
    unique = uuid.uuid4().hex[:8]
    real = java_check("MessagingPolicies.java", real_pulsar.web_url, "standalone", unique)
    with InProcessBroker(tmp_path) as broker:
        ours = java_check("MessagingPolicies.java", broker.web_url, "standalone", unique)
    assert ours.splitlines() == real.splitlines()


def test_java_admin_client_finds_the_same_resources_on_both(
    real_pulsar: Address, java_check: JavaCheck, tmp_path: Path
) -> None:
    """Properties, expiration of subscriptions, rates of replication, backlogs, brokers, and what is never set."""
    unique = uuid.uuid4().hex[:8]
    real = java_check("Resources.java", *real_pulsar, "standalone", unique)
    with InProcessBroker(tmp_path) as broker:
        ours = java_check("Resources.java", broker.service_url, broker.web_url, "standalone", unique)
    assert ours.splitlines() == real.splitlines()


def test_java_admin_client_is_refused_at_once_what_cannot_be_set(java_check: JavaCheck, tmp_path: Path) -> None:
    with InProcessBroker(tmp_path) as broker:
        lines = java_check(
            "Resources.java", broker.service_url, broker.web_url, "standalone", "x", "refused"
        ).splitlines()
    assert lines[0] == "persistence: ServerSideErrorException 501"
    statuses = [line.rpartition(" ")[2] for line in lines]
    assert statuses == ["501", "true"] * 7


def test_calls_that_real_brokers_serve_are_those_written_down(java_check: JavaCheck) -> None:
    written = CONVERSATIONS[0].parents[1] / "admin_calls.txt"
    assert java_check("AdminPaths.java").splitlines() == written.read_text().splitlines()
