"""Trying again."""

import pytest

from interpulse.client.transport.backoff import Backoff, retry
from interpulse.model.errors import NotAllowed, OperationTimeout, ServiceNotReady

FAST = Backoff(1, 2)


def test_pauses_double_up_to_the_limit() -> None:
    backoff = Backoff(100, 350)
    pauses = [backoff.next_pause() for _ in range(4)]
    for pause, full in zip(pauses, (0.1, 0.2, 0.35, 0.35), strict=True):
        assert full * 0.9 <= pause <= full
    backoff.reset()
    assert backoff.next_pause() <= 0.1


def test_pauses_before_coming_back_grow_while_nothing_holds_and_vanish_when_something_did() -> None:
    backoff = Backoff(100, 60_000)
    assert 0.09 <= backoff.pause_after(0.0) <= 0.1
    assert 0.18 <= backoff.pause_after(0.5) <= 0.2
    assert backoff.pause_after(60.0) == 0.0
    assert backoff.pause_after(0.0) <= 0.1


async def test_retry_when_the_failure_passes_then_succeeds() -> None:
    script: list[str | ServiceNotReady] = [ServiceNotReady("one"), ServiceNotReady("two"), "done"]
    outcomes = iter(script)

    async def attempt() -> str:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert await retry(attempt, timeout_ms=1000, backoff=FAST) == "done"


async def test_retry_when_the_failure_is_final_then_is_raised_at_once() -> None:
    async def attempt() -> None:
        raise NotAllowed("never")

    with pytest.raises(NotAllowed):
        await retry(attempt, timeout_ms=60_000, backoff=FAST)


async def test_retry_when_time_is_over_then_raises_the_last_failure() -> None:
    async def attempt() -> None:
        raise ServiceNotReady("still starting")

    with pytest.raises(ServiceNotReady, match="still starting"):
        await retry(attempt, timeout_ms=20, backoff=FAST)


async def test_retry_when_an_attempt_hangs_then_operation_timeout() -> None:
    import asyncio

    with pytest.raises(OperationTimeout):
        await retry(asyncio.Event().wait, timeout_ms=20, backoff=FAST)


async def test_retry_when_an_attempt_tries_again_too_long_then_its_reason_is_raised() -> None:
    async def refuse() -> None:
        raise ServiceNotReady("no broker may have it")

    async def attempt() -> None:
        await retry(refuse, timeout_ms=60_000, backoff=Backoff(1, 2))

    with pytest.raises(ServiceNotReady, match="no broker may have it"):
        await retry(attempt, timeout_ms=60, attempt_timeout_ms=30, backoff=Backoff(1, 2))
