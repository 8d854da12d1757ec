"""What the official Java admin client gets from our broker is what it gets from a real Pulsar."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from interpulse.testing import InProcessBroker
from tests.interop.conftest import JavaCheck
from tests.interop.real_pulsar import Address

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
