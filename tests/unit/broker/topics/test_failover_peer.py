"""The looks at the peer: roles before and after its answers, and without them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from interpulse.broker.topics.failover_peer import FailoverPeer, PeerSettings
from interpulse.clock import iso_time
from interpulse.model.errors import NamespaceNotFound, RemoteClusterUnavailable
from interpulse.model.names import PUBLIC_DEFAULT, NamespaceName
from interpulse.rules.failover_role import FailoverRole, Role, after_peer
from tests.support.fake_clock import FakeClock
from tests.support.waiting import eventually

BEFORE = iso_time(0)
"""A time before the start of the broker."""


class Site:
    """A cluster with one role, whose peer gives answers that the test sets."""

    def __init__(self, stored: FailoverRole | None, *, holds: bool = False) -> None:
        self.role = stored
        self.answer: dict[str, Any] | Exception = RemoteClusterUnavailable("west does not answer")
        self.asked = 0
        self.applied: list[NamespaceName] = []
        self.clock = FakeClock()
        self.tasks: list[asyncio.Task[None]] = []
        self.peer = FailoverPeer(PeerSettings("west", 10, holds), self.ask, self.clock)

    async def ask(self, namespace: NamespaceName) -> dict[str, Any]:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def stored(self, namespace: NamespaceName) -> FailoverRole | None:
        return self.role

    async def stand_by_after(self, namespace: NamespaceName, peer_epoch: int) -> FailoverRole | None:
        assert self.role is not None
        before, self.role = self.role, after_peer(self.role, peer_epoch)
        return None if self.role is before else self.role

    def in_force(self) -> FailoverRole:
        assert self.role is not None
        return self.peer.in_force(PUBLIC_DEFAULT, self.role)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(work))

    def start(self) -> None:
        self.peer.start(self, self.spawn, self.applied.append)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait for looks at the peer; the first one is immediate, the next ones follow each second."""
        await eventually(reached)

    def stop(self) -> None:
        for task in self.tasks:
            task.cancel()


@pytest.fixture
def started(request: pytest.FixtureRequest) -> Any:
    sites: list[Site] = []

    def start(stored: FailoverRole | None, **options: Any) -> Site:
        site = Site(stored, **options)
        sites.append(site)
        site.start()
        return site

    yield start
    for site in sites:
        site.stop()


def active(epoch: int = 4, since: str = BEFORE) -> FailoverRole:
    return FailoverRole(Role.ACTIVE, epoch, since=since)


async def test_role_of_an_earlier_run_when_the_peer_has_no_higher_epoch_then_fenced_until_it_answers(
    started: Callable[..., Site],
) -> None:
    site = started(active())
    site.answer = {"role": "standby;epoch=4", "epoch": 4}
    role = site.in_force()
    assert (role.role, role.epoch, role.unconfirmed_by) == (Role.FENCED, 4, "west")
    assert role != active()
    await site.until(lambda: site.applied == [PUBLIC_DEFAULT])
    assert site.in_force() == active()
    assert site.peer.seen(PUBLIC_DEFAULT) == ("standby;epoch=4", 4, iso_time(site.clock.now_ms()))


@pytest.mark.parametrize("role", [Role.ACTIVE, Role.FENCED])
async def test_role_when_the_peer_has_a_higher_epoch_then_standby_with_that_epoch(
    started: Callable[..., Site], role: Role, caplog: pytest.LogCaptureFixture
) -> None:
    site = started(FailoverRole(role, 4, since=BEFORE))
    site.answer = {"role": "active;epoch=5", "epoch": 5}
    site.in_force()
    await site.until(lambda: site.role == FailoverRole(Role.STANDBY, 5))
    assert site.in_force() == FailoverRole(Role.STANDBY, 5)
    (logged,) = caplog.messages
    assert logged.startswith("namespace is standby, as the peer has a higher epoch namespace=public/default")


@pytest.mark.parametrize("role", [Role.STANDBY, Role.MOVED])
async def test_role_that_publishes_nothing_then_stays_whatever_the_peer_says(
    started: Callable[..., Site], role: Role
) -> None:
    stored = FailoverRole(role, 4, since=BEFORE)
    site = started(stored)
    site.answer = {"role": "active;epoch=5", "epoch": 5}
    assert site.in_force() == stored
    await site.until(lambda: site.applied == [PUBLIC_DEFAULT])
    assert site.role is stored


async def test_role_that_was_set_since_the_start_then_in_force_without_an_answer(started: Callable[..., Site]) -> None:
    site = started(active(since=iso_time(FakeClock().now_ms())))
    assert site.in_force() == active()


async def test_peer_when_it_does_not_answer_then_the_role_is_in_force_after_the_wait(
    started: Callable[..., Site], caplog: pytest.LogCaptureFixture
) -> None:
    site = started(active())
    site.in_force()
    await site.until(lambda: site.asked == 1)
    assert site.in_force().role is Role.FENCED
    site.clock.now += 10
    await site.until(lambda: site.applied == [PUBLIC_DEFAULT])
    assert site.in_force() == active()
    states = [message.partition("state=")[2].partition(" error=")[0] for message in caplog.messages]
    assert states == ["fenced until it answers", "served as it was"]


async def test_peer_when_it_does_not_answer_and_the_broker_holds_then_fenced_until_it_does(
    started: Callable[..., Site],
) -> None:
    site = started(active(), holds=True)
    site.in_force()
    site.clock.now += 1000
    await site.until(lambda: site.asked >= 2)
    assert (site.in_force().role, site.applied) == (Role.FENCED, [])
    site.answer = NamespaceNotFound("a cluster of Apache Pulsar")
    await site.until(lambda: site.applied == [PUBLIC_DEFAULT])
    assert (site.in_force(), site.peer.seen(PUBLIC_DEFAULT)) == (active(), None)


async def test_answer_without_an_epoch_then_counts_as_none(
    started: Callable[..., Site], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    site = started(active())
    site.answer = {"role": "active"}
    site.in_force()
    await site.until(lambda: bool(caplog.messages))
    assert "Its answer has no epoch: {'role': 'active'}" in caplog.messages[0]
    assert site.in_force().role is Role.FENCED


async def test_namespace_that_has_no_role_any_more_then_not_asked_for(started: Callable[..., Site]) -> None:
    site = started(active())
    site.answer = {"role": "active;epoch=4", "epoch": 4}
    site.in_force()
    site.role = None
    await site.until(lambda: site.asked == 1)
    await site.until(lambda: site.peer.seen(PUBLIC_DEFAULT) is None)
    assert site.applied == []
