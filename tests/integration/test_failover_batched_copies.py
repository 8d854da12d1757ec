"""The preflight of a pair whose newest copy is a batch, as most are."""

from __future__ import annotations

import asyncio
from pathlib import Path

from interpulse.failover.preflight.findings import CheckKind
from interpulse.failover.preflight.gathering import preflight
from interpulse.failover.site import SiteAccess
from interpulse.model.names import TopicName
from interpulse.wire.stamps import source_positions
from tests.support.recorded_pair import TOPIC, playing, until


async def test_check_when_the_newest_copy_is_a_batch_then_its_source_is_known(tmp_path: Path) -> None:
    async with playing(tmp_path / "pair") as play:
        config = play.file(tmp_path / "state")
        east, west = (SiteAccess.of(config, site) for site in ("east", "west"))
        try:
            client = play.clients["east"].client
            async with await client.create_producer(TOPIC, batching_enabled=True, batch_delay_ms=200) as producer:
                await asyncio.gather(*(producer.send("x") for _ in range(5)))
            name = TopicName.parse(TOPIC)

            async def is_copied() -> bool:
                return name in await west.topics() and await west.newest_entry(name) is not None

            await until(is_copied)
            entry = await west.newest_entry(name)
            assert entry is not None
            assert (entry.parsed.message_count, len(source_positions(entry.parsed.metadata))) == (5, 1)
            findings = (await preflight(config, east, west)).findings
        finally:
            await east.close()
            await west.close()
    assert CheckKind.NO_SOURCE_POSITIONS not in {finding.kind for finding in findings}
