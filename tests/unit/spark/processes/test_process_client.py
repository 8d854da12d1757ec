"""The client that the tasks of one Spark process share."""

import asyncio
import gc
import os
from collections.abc import Iterator

import pytest

from interpulse.client.config import ClientConfig
from interpulse.client.outages import Outages
from interpulse.client.session import Session
from interpulse.model.errors import NotAllowed, NotConnected
from interpulse.spark.options.connection_options import Access
from interpulse.spark.processes import process_client
from interpulse.spark.processes.process_client import (
    Patience,
    close_sessions,
    patiently,
    process_portal,
    relaxed_collector,
    session_for,
)

SERVICE_URL = "pulsar://127.0.0.1:1"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No client yet, and none left behind."""
    monkeypatch.setattr(process_client, "_client", None)
    yield
    process_portal().close()


def test_portal_when_asked_for_again_then_is_the_same() -> None:
    first = process_portal()
    assert process_portal() is first
    assert first.run(asyncio.get_running_loop) is first.run(asyncio.get_running_loop)


def test_portal_and_sessions_when_process_is_a_forked_child_then_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = process_portal()
    session = parent.call(lambda: session_for(SERVICE_URL, 1_000, Access()))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    child = process_portal()
    assert child is not parent
    assert child.call(lambda: session_for(SERVICE_URL, 1_000, Access())) is not session
    parent.call(session.close)
    parent.close()


def test_session_when_cluster_and_access_are_the_same_then_is_shared_until_it_is_closed() -> None:
    call = process_portal().call
    first = call(lambda: session_for(SERVICE_URL, 1_000, Access()))
    assert call(lambda: session_for(SERVICE_URL, 1_000, Access())) is first
    assert call(lambda: session_for(SERVICE_URL, 2_000, Access())) is not first
    call(first.close)
    assert call(lambda: session_for(SERVICE_URL, 1_000, Access())) is not first


async def test_sessions_when_another_loop_runs_then_are_its_own_and_closed_there() -> None:
    here = await session_for(SERVICE_URL, 1_000, Access())
    in_portal = process_portal().call(lambda: session_for(SERVICE_URL, 1_000, Access()))
    assert in_portal is not here
    await close_sessions()
    assert (here.is_closed, in_portal.is_closed) == (True, False)
    assert await session_for(SERVICE_URL, 1_000, Access()) is not here
    await close_sessions()


def test_collector_when_relaxed_then_has_its_usual_thresholds_afterwards() -> None:
    usual = gc.get_threshold()
    with relaxed_collector():
        assert gc.get_threshold()[0] > usual[0]
    assert gc.get_threshold() == usual


@pytest.mark.parametrize(("outage_ms", "longest_ms"), [(None, 30_000), (3_000, 3_000), (60_000, 30_000), (50, 1_000)])
def test_session_when_an_outage_is_not_waited_for_then_waits_no_longer_for_an_answer(
    outage_ms: int | None, longest_ms: int
) -> None:
    session = process_portal().call(lambda: session_for(SERVICE_URL, 30_000, Access(), Patience(outage_ms)))
    assert session.config.operation_timeout_ms == session.config.lookup_timeout_ms == longest_ms
    assert session.config.connect_timeout_ms == min(longest_ms, 10_000)


async def test_attempt_when_it_fails_after_waiting_then_is_no_part_of_a_later_outage() -> None:
    outages = Outages("here")
    session = Session(ClientConfig("pulsar://x:1", backoff_initial_ms=1, backoff_max_ms=5), outages)
    failures = [NotConnected("no route"), NotAllowed("never")]

    async def attempt() -> None:
        raise failures.pop(0)

    with pytest.raises(NotAllowed):
        await patiently(session, attempt)
    assert (outages.waiting(0.0), outages.take_resolved()) == (None, [])
    await session.close()
