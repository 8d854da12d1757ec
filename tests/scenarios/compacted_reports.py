"""Reports that are written again and again, compacted, and read: the same with every kind of broker."""

from __future__ import annotations

import asyncio

from interpulse.failover.control_topic import KEEPER
from interpulse.failover.reporting.reports import Report, Totals
from interpulse.failover.reporting.stored import TOTALS, compact_reports, key_of, read_reports
from interpulse.failover.reporting.watching import ReportStore
from interpulse.failover.site import SiteAccess
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from tests.support.waiting import SECONDS_MAX

TIMES = 50


async def newest_reports_survive_compaction(site: SiteAccess, topic: TopicName) -> None:
    """Write reports, compact twice, and read: the newest is there, and nothing else is kept by the subscription."""
    paid = TopicName.parse(f"persistent://{topic.namespace_name}/paid")
    assert await read_reports(site, topic) == ({}, None)
    store = ReportStore(site, topic)
    for number in range(TIMES):
        report = Report("east", number, Position(7, number), Position(7, 0), messages=number)
        await store.write({key_of(paid): report.to_json()})
    sums = Totals("east", TIMES, 1, 0, 0.0)
    await store.write({TOTALS: sums.to_json()})
    await compact_reports(site, topic)
    async with asyncio.timeout(SECONDS_MAX):
        while (await site.admin.topics.compaction_status(topic))["status"] != "SUCCESS":  # noqa: ASYNC110  # no event
            await asyncio.sleep(0.1)
    await compact_reports(site, topic)
    subscription = (await site.admin.topics.stats(topic))["subscriptions"][KEEPER]
    assert subscription["msgBacklog"] == 0
    assert await read_reports(site, topic) == ({paid: report}, sums)
    await store.close()
