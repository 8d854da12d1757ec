"""Reports of a pair on a real Pulsar: stored, compacted and read as on a broker of ours."""

from __future__ import annotations

import uuid

import pytest

from interpulse.failover.pair_config import SiteAddress
from interpulse.failover.site import SiteAccess
from interpulse.model.names import NamespaceName, TopicName
from tests.interop.real_pulsar import Address
from tests.scenarios.compacted_reports import newest_reports_survive_compaction

pytestmark = [pytest.mark.interop, pytest.mark.slow]


async def test_reports_when_compacted_by_a_real_pulsar_then_the_newest_are_kept(real_pulsar: Address) -> None:
    namespace = NamespaceName.parse(f"public/reports-{uuid.uuid4().hex[:8]}")
    address = SiteAddress(cluster="standalone", service_url=real_pulsar.service_url, admin_url=real_pulsar.web_url)
    site = SiteAccess("east", address, "west", (namespace,))
    await site.admin.namespaces.create(namespace)
    await newest_reports_survive_compaction(
        site, TopicName.parse(f"persistent://{namespace}/interpulse-failover-o-reports")
    )
    await site.close()
