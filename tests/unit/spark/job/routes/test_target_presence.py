"""Staying connected to many topic-partitions of the target."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, cast

import pytest

from interpulse.client.session import Session
from interpulse.model.errors import ServiceNotReady
from interpulse.spark.job.routes.target_presence import TargetPresence

NAMES = [f"persistent://public/default/t{number}" for number in range(40)]


class Sender:
    """A producer in memory; ``refused`` cannot be opened, ``stuck`` fails while it is closed."""

    open_now: ClassVar[list[str]] = []
    opened: ClassVar[list[str]] = []
    opening = opening_most = 0
    refused: ClassVar[set[str]] = set()
    stuck: ClassVar[set[str]] = set()

    def __init__(self, session: Any, topic: Any, name: str, **options: Any) -> None:
        self.topic = str(topic)
        self.failure = None

    async def open(self) -> None:
        kind = type(self)
        kind.opening += 1
        kind.opening_most = max(kind.opening_most, kind.opening)
        await asyncio.sleep(0)
        kind.opening -= 1
        if self.topic in self.refused:
            raise ServiceNotReady("not now")
        self.opened.append(self.topic)
        self.open_now.append(self.topic)

    async def close(self) -> None:
        if self.topic in self.stuck:
            raise RuntimeError("a fault of ours")
        self.open_now.remove(self.topic)


@pytest.fixture
def senders(monkeypatch: pytest.MonkeyPatch) -> type[Sender]:
    fresh = type("Fresh", (Sender,), {"open_now": [], "opened": [], "refused": set(), "stuck": set()})
    monkeypatch.setattr("interpulse.spark.job.routes.target_presence.EntrySender", fresh)
    return cast(type[Sender], fresh)


async def test_many_are_opened_together_a_bounded_number_at_a_time_and_each_once(senders: type[Sender]) -> None:
    presence, session = TargetPresence("lane"), cast(Session, None)
    senders.refused.add(NAMES[3])
    await presence.keep(session, NAMES)
    assert (senders.opening_most, len(senders.opened)) == (16, 39)
    senders.refused.clear()
    await presence.keep(session, NAMES)
    assert senders.opened[39:] == [NAMES[3]]


async def test_one_that_cannot_be_left_is_logged_and_keeps_no_other(
    senders: type[Sender], caplog: pytest.LogCaptureFixture
) -> None:
    presence = TargetPresence("lane")
    await presence.keep(cast(Session, None), NAMES)
    senders.stuck.add(NAMES[0])
    await presence.leave(NAMES[:5])
    assert sorted(senders.open_now) == sorted([NAMES[0], *NAMES[5:]])
    (logged,) = caplog.records
    assert (NAMES[0] in logged.getMessage(), logged.exc_info is not None) == (True, True)
    await presence.close()
    assert senders.open_now == [NAMES[0]]
