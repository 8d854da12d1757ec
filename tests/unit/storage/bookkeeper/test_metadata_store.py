"""Ledgers in ZooKeeper, also when an answer of it is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interpulse.storage.bookkeeper.errors import BookKeeperError, LedgerChanged, LedgerUnusable, NoLedger
from interpulse.storage.bookkeeper.metadata_store import LedgerMetadataStore
from interpulse.storage.bookkeeper.records import (
    AVAILABLE,
    LAYOUT,
    READ_ONLY,
    Address,
    LedgerMetadata,
    Quorum,
    Segment,
    path_of,
)
from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.support.scripted_zookeeper import ScriptedZooKeeper

NEW = LedgerMetadata(Quorum(1, 1, 1), (Segment(0, ("127.0.0.1:3181",)),), token=77)
REGISTERED = bytes.fromhex("32220a06626f6f6b696510ed181a093132372e302e302e31220a626f6f6b69652d727063")


@pytest.fixture
def store(nodes: ZooKeeperClient) -> LedgerMetadataStore:
    return LedgerMetadataStore(nodes)


async def test_ledgers_when_created_then_each_has_an_id_and_its_metadata(
    store: LedgerMetadataStore, nodes: ZooKeeperClient
) -> None:
    ids = [await store.create(replace(NEW, token=token)) for token in (1, 2, 3)]
    assert ids == [0, 1, 2]
    assert (await store.read(1)).ledger == replace(NEW, token=2)
    assert (await nodes.children("/ledgers/idgen")).names == []


async def test_metadata_when_changed_by_two_then_the_second_is_refused(store: LedgerMetadataStore) -> None:
    ledger_id = await store.create(NEW)
    kept = await store.read(ledger_id)
    version = await store.write(ledger_id, kept.ledger.recovering(), kept.version)
    with pytest.raises(LedgerChanged):
        await store.write(ledger_id, kept.ledger.closed_at(3, 30), kept.version)
    await store.write(ledger_id, kept.ledger.closed_at(4, 40), version)
    assert (await store.read(ledger_id)).ledger.last_entry == 4


@pytest.mark.parametrize("fault", ["losing", "dropping"])
async def test_writes_when_an_answer_or_a_request_is_lost_then_done_once(
    fault: str, store: LedgerMetadataStore, zookeeper: ScriptedZooKeeper
) -> None:
    await store.create(replace(NEW, token=1))  # with what lies above
    faults = getattr(zookeeper, fault)
    faults["create"] = 1
    ledger_id = await store.create(NEW)
    faults["create"] = 2  # of the id, and of the ledger
    second = await store.create(replace(NEW, token=78))
    faults["set"] = 1
    version = await store.write(ledger_id, NEW.recovering(), 0)
    assert version == 1
    assert (await store.read(ledger_id)).ledger == NEW.recovering()
    faults["delete"] = 1
    await store.delete(second)
    with pytest.raises(NoLedger):
        await store.read(second)


async def test_ledger_when_its_id_is_taken_then_refused(store: LedgerMetadataStore, nodes: ZooKeeperClient) -> None:
    first = await store.create(NEW)
    await nodes.create(path_of(first + 1), (await nodes.get(path_of(first))).value)
    with pytest.raises(LedgerUnusable, match="another ledger has its id"):
        await store.create(replace(NEW, token=78))


async def test_ledger_when_deleted_then_gone_and_may_be_deleted_again(store: LedgerMetadataStore) -> None:
    ledger_id = await store.create(NEW)
    await store.delete(ledger_id)
    await store.delete(ledger_id)
    with pytest.raises(NoLedger, match=f"there is no ledger {ledger_id}"):
        await store.read(ledger_id)
    with pytest.raises(NoLedger):
        await store.write(ledger_id, NEW, 0)


async def test_bookies_when_registered_then_addresses_stay_known_after_they_leave(
    store: LedgerMetadataStore, nodes: ZooKeeperClient
) -> None:
    assert await store.writable_bookies() == []
    for path in (f"{AVAILABLE}/b-1", f"{READ_ONLY}/b-2"):
        await nodes.create_parents(path)
        await nodes.create(path, REGISTERED)
    assert await store.writable_bookies() == ["b-1"]
    assert [await store.address(name) for name in ("b-1", "b-2")] == [Address("127.0.0.1", 3181)] * 2
    await nodes.delete(f"{AVAILABLE}/b-1")
    assert await store.address("b-1") == Address("127.0.0.1", 3181)
    assert await store.address("10.0.0.9:3181") == Address("10.0.0.9", 3181)
    with pytest.raises(BookKeeperError, match="bookie b-3 is not registered"):
        await store.address("b-3")


@pytest.mark.parametrize(
    ("layout", "allowed"),
    [
        (None, True),
        ("2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1", True),
        ("2\norg.apache.bookkeeper.meta.FlatLedgerManagerFactory:1", False),
        ("2\norg.apache.bookkeeper.meta.LongHierarchicalLedgerManagerFactory:1", False),
        ("nonsense", False),
    ],
)
async def test_layout_when_not_that_of_pulsar_then_refused(
    layout: str | None, allowed: bool, store: LedgerMetadataStore, nodes: ZooKeeperClient
) -> None:
    if layout is not None:
        await nodes.create_parents(LAYOUT)
        await nodes.create(LAYOUT, layout.encode())
    if allowed:
        await store.check_layout()
        return
    with pytest.raises(BookKeeperError, match="only HierarchicalLedgerManagerFactory is supported"):
        await store.check_layout()


async def test_ids_when_used_up_then_refused(
    store: LedgerMetadataStore, nodes: ZooKeeperClient, zookeeper: ScriptedZooKeeper
) -> None:
    await store.create(NEW)
    zookeeper.nodes["/ledgers/idgen"].made = 2**31 - 1
    with pytest.raises(BookKeeperError, match="ids have reached 2147483647"):
        await store.create(NEW)
