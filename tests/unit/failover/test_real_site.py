"""A site of Apache Pulsar whose fence cannot be held at first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from interpulse.failover import real_site
from interpulse.failover.real_site import RealSite
from interpulse.failover.switch import serves_any
from interpulse.model.errors import ServiceNotReady
from interpulse.model.ids import Position
from interpulse.model.names import PUBLIC_DEFAULT, TopicName
from interpulse.rules.failover_role import FailoverRole, Role

TOPIC = TopicName.parse("persistent://public/default/orders")


class Holder:
    """A fence that is refused as often as the test says."""

    refusals = 0
    made: ClassVar[list[Holder]] = []

    def __init__(self, access: Any, pair: str, epoch: int) -> None:
        self.holds = self.closed = False
        self.open_topics: list[TopicName] = []
        self.made.append(self)

    async def hold(self) -> None:
        if Holder.refusals:
            Holder.refusals -= 1
            raise ServiceNotReady("not now")
        self.holds = True

    async def close(self) -> None:
        self.closed = True

    def gaps(self) -> list[Any]:
        return []

    async def positions(self) -> dict[TopicName, Position]:
        return {TOPIC: Position(3, 7)} if self.holds else {}


async def test_fence_that_is_refused_then_the_next_attempt_holds_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    Holder.refusals, Holder.made[:] = 1, []
    monkeypatch.setattr(real_site, "FenceHolder", Holder)
    site = RealSite(SimpleNamespace(namespaces=()), "orders")  # type: ignore[arg-type]

    async def done(*_: object, **__: object) -> dict[Any, Any]:
        return {PUBLIC_DEFAULT: FailoverRole(Role.ACTIVE, 4)}

    async def no_stats() -> dict[Any, Any]:
        return {}

    for name, answer in (("roles", done), ("_record_auto_creation", done), ("_record", done)):
        monkeypatch.setattr(site, name, answer)
    monkeypatch.setattr(site, "_stats_of_all", no_stats)
    with pytest.raises(ServiceNotReady):
        await site.fence()
    fence = await site.fence()
    assert fence.positions == {str(TOPIC): Position(3, 7)}
    assert [(holder.holds, holder.closed) for holder in Holder.made] == [(False, True), (True, False)]


@pytest.mark.parametrize(
    ("role", "epoch", "expected"),
    [
        (Role.ACTIVE, 5, True),
        (Role.FENCED, 5, False),
        (Role.ACTIVE, 4, False),
        (Role.STANDBY, 5, False),
    ],
)
def test_promotion_is_seen_in_the_stored_role(role: Role, epoch: int, expected: bool) -> None:
    assert serves_any({PUBLIC_DEFAULT: FailoverRole(role, epoch)}, 5) is expected
