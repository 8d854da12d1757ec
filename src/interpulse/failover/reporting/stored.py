"""The topic of the reports on one site: created there, kept at home and small, written and read.

It is not the control topic: an operation holds that one exclusively. Its messages are compacted by the broker, so the
newest report of each topic-partition is there, however long the reporter runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from interpulse.failover.control_topic import KEEPER, prepare_control_topic, read_newest
from interpulse.failover.pair_config import PairConfig
from interpulse.failover.reporting.reports import AtStake, Report, Totals, at_stake
from interpulse.failover.site import SiteAccess
from interpulse.in_turns import concurrently
from interpulse.model.errors import Conflict
from interpulse.model.names import TopicName

TOTALS: Final = "report"
"""Key of the sums of all reports."""

_PREFIX: Final = "report/"
_SUCCESS: Final = "SUCCESS"
_RUNNING: Final = "RUNNING"
_AT_ONCE: Final = 64


def reports_topic(config: PairConfig) -> TopicName:
    """Return the topic of the reports, on both sites."""
    return TopicName.parse(f"{config.control_topic}-reports")


def key_of(topic: TopicName) -> str:
    """Return the key of the reports about a topic-partition."""
    return f"{_PREFIX}{topic}"


async def prepare_reports_topic(site: SiteAccess, topic: TopicName) -> None:
    """Create the topic unless it exists."""
    await prepare_control_topic(site, topic)


async def compact_reports(site: SiteAccess, topic: TopicName) -> None:
    """Let the broker drop reports that newer ones replace. What the last compaction has covered is released."""
    topics = site.admin.topics
    status = (await topics.compaction_status(topic))["status"]
    if status == _SUCCESS:
        await topics.skip_all(topic, KEEPER)  # the cursor of the compaction keeps what it has not read
    if status != _RUNNING:
        with suppress(Conflict):
            await topics.compact(topic)


async def read_reports(site: SiteAccess, topic: TopicName) -> tuple[dict[TopicName, Report], Totals | None]:
    """Return the newest report of each topic-partition, and the newest sums; none without a reporter so far.

    Raise ValueError that names a message which is no report, and the site's error.
    """
    reports: dict[TopicName, Report] = {}
    sums: Totals | None = None
    for key, message in (await read_newest(site, topic, compacted=True)).items():
        try:
            body = json.loads(message.content or b"")
            if key == TOTALS:
                sums = Totals.from_json(body)
            elif key.startswith(_PREFIX):
                reports[TopicName.parse(key.removeprefix(_PREFIX))] = Report.from_json(body)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{topic} at {site.name}: the message with the key {key} is no report: {error}") from error
    return reports, sums


async def last_reports(site: SiteAccess, config: PairConfig) -> Mapping[TopicName, Report]:
    """Return the newest report of each topic-partition; see `read_reports`."""
    return (await read_reports(site, reports_topic(config)))[0]


async def stake_of(lost: str, survivor: SiteAccess, config: PairConfig) -> AtStake | None:
    """Return what is at stake if the site ``lost`` does not come back, as the other site knows it.

    None without a report of it. The newest copies are read from the survivor now.
    """
    reports, sums = await read_reports(survivor, reports_topic(config))
    behind = [topic for topic, report in reports.items() if report.site == lost and report.behind_entries]
    copied = await concurrently(survivor.last_copied, behind, limit=_AT_ONCE)
    return at_stake(lost, reports, dict(zip(behind, copied, strict=True)), sums)
