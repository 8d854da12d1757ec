"""`verify` between a broker of ours and a real Pulsar: what its tasks read and judge, without Spark in between."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.spark.rows.columns import ENTRY_WRITE_COLUMNS
from interpulse.spark.verify.digests import ContentDigests, Digest, PositionDigests
from interpulse.spark.verify.judging import Problem
from interpulse.testing import InProcessBroker
from tests.interop.real_pulsar import Address
from tests.support.altered_copies import Alteration, copy_partition
from tests.support.judged_copies import Item, judge
from tests.support.spark_source import read_batch

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture
def sides(real_pulsar: Address, tmp_path: Path) -> Iterator[dict[str, Address]]:
    with InProcessBroker(tmp_path / "ours", {"clusterName": "ours"}) as broker:
        yield {"standalone": real_pulsar, "ours": Address(broker.service_url, broker.web_url)}


def judged(source: Any, target: Any) -> list[Problem]:
    """What the job makes of the digests of both sides."""
    groups: dict[tuple[str, bytes], tuple[list[Digest], list[Digest]]] = {}
    for side, found in enumerate((source, target)):
        for each in found:
            if each.skipped is None:
                groups.setdefault((each.topic, each.key), ([], []))[side].append(each)
    items = ([[_item(each) for each in sorted(side, key=_place)] for side in group] for group in groups.values())
    return [found.problem for originals, copies in items for found in judge(originals, copies)]


def _place(digest: Digest) -> tuple[int, int, int, int]:
    return digest.partition, digest.ledger, digest.entry, digest.batch


def _item(digest: Digest) -> Item:
    return Item(digest.identity, digest.content, digest.place, digest.overtaken)


async def publish_in_three_forms(cluster: Address, topic: str) -> None:
    async with AdminClient(cluster.web_url) as admin:
        await admin.topics.create_partitioned(topic, 1)
    async with Client(cluster.service_url) as client:
        for options in ({}, {"compression": "lz4"}, {"batching_enabled": False}):
            async with await client.create_producer(topic, **options) as producer:
                sends = (
                    producer.send(b"%d" % number, key=f"k{number % 3}", properties={"n": str(number)})
                    for number in range(20)
                )
                await asyncio.gather(*sends)


def lose_and_swap(originals: Any) -> Any:
    first, second, *rest = originals
    return [second, first, *rest[:-1], rest[-2]]


@pytest.mark.parametrize(
    ("here", "there"),
    [("ours", "ours"), ("ours", "standalone"), ("standalone", "ours"), ("standalone", "standalone")],
)
@pytest.mark.parametrize(
    ("alter", "expected"),
    [(list, {}), (lose_and_swap, {"reordered": 1, "missing": 1, "duplicated": 1})],
    ids=["equal", "altered"],
)
async def test_copies_when_judged_then_have_the_problems_that_were_made(
    here: str, there: str, alter: Alteration, expected: dict[str, int], sides: dict[str, Address]
) -> None:
    source, target = sides[here], sides[there]
    topic = f"persistent://public/default/verify-{uuid.uuid4().hex[:8]}"
    copies = f"{topic}-copy"
    await publish_in_three_forms(source, topic)
    async with AdminClient(target.web_url) as admin:
        await admin.topics.create_partitioned(copies, 1)
    names = f"{topic}-partition-0", f"{copies}-partition-0"
    await copy_partition(source.service_url, target.service_url, *names, cluster="east", alter=alter)

    def read(cluster: Address, name: str, **options: str) -> list[dict[str, Any]]:
        return read_batch({"service.url": cluster.service_url, "topics": name, "preserveOrder": "true", **options})

    columns = {"mode": "entry", "includeColumns": ",".join(ENTRY_WRITE_COLUMNS)}
    digests = [
        PositionDigests({name: topic}, "east", "west", is_target=is_target).digests(iter(read(side, name, **columns)))
        for side, name, is_target in ((source, names[0], False), (target, names[1], True))
    ]
    assert Counter(judged(*digests)) == expected
    columns = {"valueSchema": "raw", "includeColumns": "__key,__topic,__ledgerId,__entryId,__batchIndex"}
    contents = [
        ContentDigests({name: topic}).digests(iter(read(side, name, **columns)))
        for side, name in zip((source, target), names, strict=True)
    ]
    found = set(judged(*contents)) - {"reordered"}  # batches of the same messages were swapped
    assert found == set(expected) - {"reordered"}
