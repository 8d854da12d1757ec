"""Draining and settling, against sites that the test moves by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from interpulse.failover.journal import Journal, Operation
from interpulse.failover.outcome import Outcome
from interpulse.failover.pair_config import PairConfig, parse_pair_config
from interpulse.failover.site import Fence, Site, SubscriptionLook
from interpulse.failover.steps.drain import Drain
from interpulse.failover.steps.settle import Settle
from interpulse.failover.switch import Switch
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import NamespaceName, TopicName
from interpulse.rules.failover_role import FailoverRole, Role

NAMESPACE = NamespaceName.parse("shop/orders")
PAID, SENT = "persistent://shop/orders/paid", "persistent://shop/orders/sent"


@dataclass
class Access:
    """Positions of a site."""

    name: str
    cluster: str
    copied: dict[str, Position] = field(default_factory=dict)
    to_copy: dict[str, list[Position]] = field(default_factory=dict)

    async def last_copied(self, topic: TopicName) -> Position:
        return self.copied.get(str(topic), EARLIEST)

    async def first_to_copy(self, topic: TopicName, after: Position, upto: Position) -> Position | None:
        places = self.to_copy.get(str(topic), [])
        return next((place for place in places if after < place <= upto), None)


@dataclass
class ScriptedSite:
    """A site whose state the test sets."""

    access: Access
    role: Role
    renewed: Fence | None = None
    pending: dict[str, str] = field(default_factory=dict)
    changed: bool = False
    subscriptions: frozenset[tuple[str, str]] = frozenset({(PAID, "billing")})

    async def roles(self) -> dict[NamespaceName, FailoverRole]:
        return {NAMESPACE: FailoverRole(self.role, 4)}

    async def renewed_fence(self) -> Fence | None:
        renewed, self.renewed = self.renewed, None
        return renewed

    async def closed_ways(self, cluster: str) -> Mapping[str, str]:
        return {PAID: f"HELD, the quota of {cluster} is used up"}

    async def pending_ways(self, cluster: str) -> dict[str, str]:
        return self.pending

    async def look_at_subscriptions(self, before: SubscriptionLook | None) -> SubscriptionLook:
        return SubscriptionLook(self.changed, self.subscriptions, {})


class Scene:
    """A switch from east, which is fenced, to west."""

    def __init__(self, directory: Path, operation: Operation) -> None:
        self.now = 0.0
        self.east = ScriptedSite(Access("east", "east"), Role.FENCED)
        self.west = ScriptedSite(Access("west", "west"), Role.STANDBY)
        journal = Journal.create(directory, operation)
        sites = cast(Site, self.east), cast(Site, self.west)
        self.switch = Switch(config(directory), journal, *sites, lambda: self.now)
        self.east.access.to_copy = {PAID: [Position(3, 0), Position(3, 5)]}
        self.switch.fence = Fence({PAID: Position(3, 7), SENT: Position(4, -1)}, 2)
        self.drain = Drain(self.switch, waits=False)


def config(directory: Path) -> PairConfig:
    def site(name: str, port: int) -> dict[str, Any]:
        return {"cluster": name, "service_url": f"pulsar://{name}:{port}", "admin_url": f"http://{name}:{port}"}

    pair = {"name": "orders", "sites": ["east", "west"], "namespaces": [str(NAMESPACE)], "state": str(directory)}
    return parse_pair_config({"pair": pair, "east": site("east", 1), "west": site("west", 2)})


@pytest.fixture
def scene(tmp_path: Path, operation: Operation) -> Scene:
    return Scene(tmp_path, operation)


async def test_drain_when_the_last_entry_to_copy_has_not_arrived_then_names_it_and_the_reason(scene: Scene) -> None:
    assert await scene.drain.holds() is None
    reason = "HELD, the quota of west is used up"
    assert scene.drain.waits_for() == [f"{PAID} has not arrived at west from 3:0 on: {reason}"]
    scene.west.access.copied[PAID] = Position(3, 4)
    assert await scene.drain.holds() is None
    assert "from 3:5 on" in scene.drain.waits_for()[0]


async def test_drain_when_only_entries_without_a_copy_follow_then_holds(scene: Scene) -> None:
    """Behind the last entry to copy are markers and copies: the fence itself is never reached, and no lag is asked."""
    assert await scene.drain.holds() is None
    scene.west.access.copied[PAID] = Position(3, 5)
    evidence = await scene.drain.holds()
    assert evidence is not None
    assert evidence.text == f"2 topic-partitions; last: {PAID} at 3:5"
    assert scene.drain.waits_for() == []


async def test_drain_when_the_fence_had_a_gap_then_its_messages_drain_too(scene: Scene) -> None:
    scene.west.access.copied[PAID] = Position(3, 5)
    assert await scene.drain.holds() is not None
    gap = f"{PAID} was not fenced for 2 s"
    scene.east.access.to_copy[PAID].append(Position(3, 8))
    scene.east.renewed = Fence({PAID: Position(3, 9), SENT: Position(4, -1)}, 0, (gap,))
    assert await scene.drain.holds() is None
    assert scene.switch.warnings == [gap]
    scene.west.access.copied[PAID] = Position(3, 8)
    assert await scene.drain.holds() is not None


async def test_drain_when_a_topic_is_not_fenced_at_present_then_waits(scene: Scene) -> None:
    scene.west.access.copied[PAID] = Position(3, 5)
    scene.east.renewed = Fence({PAID: Position(3, 7), SENT: Position(4, -1)}, 0, (), (SENT,))
    assert await scene.drain.holds() is None
    assert scene.drain.waits_for() == [f"{SENT} is not fenced at present"]


async def test_settle_when_consumers_acknowledge_then_waits_for_rest(scene: Scene) -> None:
    scene.west.access.copied[PAID] = Position(3, 5)
    settle = Settle(scene.switch, scene.drain)
    scene.east.changed = True
    assert await settle.holds() is None
    scene.now = 4
    assert await settle.holds() is None
    scene.east.changed = False
    scene.now = 8
    assert await settle.holds() is None
    scene.now = 9
    evidence = await settle.holds()
    assert evidence is not None
    assert (evidence.text, scene.switch.warnings) == ("1 subscriptions, 0 pending", [])


async def test_settle_when_consumers_never_rest_then_goes_on_with_a_warning(scene: Scene) -> None:
    scene.west.access.copied[PAID] = Position(3, 5)
    settle = Settle(scene.switch, scene.drain)
    scene.east.changed, scene.east.pending = True, {PAID: "BEHIND, 3 pending"}
    assert await settle.holds() is None
    scene.now = 60
    assert await settle.holds() is not None
    assert "Consumers still acknowledged after 60 s" in scene.switch.warnings[0]


async def test_settle_when_the_exchange_is_held_then_does_not_hold(scene: Scene) -> None:
    scene.west.access.copied[PAID] = Position(3, 5)
    settle = Settle(scene.switch, scene.drain)
    scene.east.pending = {PAID: "HELD, 3 pending, the cluster refuses"}
    for scene.now in (0, 10, 70):
        assert await settle.holds() is None
    assert settle.waits_for() == [f"{PAID}: HELD, 3 pending, the cluster refuses"]
    assert settle.overdue is Outcome.TAKEN_BACK


async def test_settle_when_no_subscription_is_carried_then_holds_immediately(scene: Scene) -> None:
    scene.west.access.copied[PAID] = Position(3, 5)
    scene.east.subscriptions = scene.west.subscriptions = frozenset()
    evidence = await Settle(scene.switch, scene.drain).holds()
    assert evidence is not None
    assert evidence.text == "no subscription is carried"
