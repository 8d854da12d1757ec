"""The thread behind the blocking client."""

import asyncio
import queue
import signal
import threading
from collections.abc import Iterator

import pytest

from interpulse.client.portal import Portal
from interpulse.model.errors import AlreadyClosed


async def current_thread_name() -> str:
    return threading.current_thread().name


def test_work_runs_in_the_thread_of_the_portal_and_its_result_comes_back() -> None:
    portal = Portal("portal-test")
    assert portal.call(current_thread_name) == "portal-test"
    assert portal.run(lambda: 3) == 3
    assert portal.submit(current_thread_name).result() == "portal-test"
    portal.close()


def test_failure_of_the_work_is_raised_in_the_callers_thread() -> None:
    portal = Portal()

    async def fail() -> None:
        raise LookupError("here")

    with pytest.raises(LookupError, match="here"):
        portal.call(fail)
    portal.close()


def test_portal_when_closed_then_its_thread_is_gone_and_work_is_refused() -> None:
    portal = Portal("portal-closed")
    portal.call(current_thread_name)
    portal.close()
    portal.close()
    assert not any(thread.name == "portal-closed" for thread in threading.enumerate())
    with pytest.raises(AlreadyClosed):
        portal.call(current_thread_name)


def test_function_when_posted_then_runs_in_the_loop_and_nothing_waits_for_it() -> None:
    portal = Portal("portal-post")
    ran_in: queue.Queue[str] = queue.Queue()
    portal.post(lambda: ran_in.put(threading.current_thread().name))
    assert ran_in.get(timeout=60) == "portal-post"
    portal.close()


def test_loop_when_made_by_the_caller_then_is_the_one_that_runs() -> None:
    loop = asyncio.new_event_loop()
    portal = Portal(new_loop=lambda: loop)
    assert portal.run(asyncio.get_running_loop) is loop
    portal.close()
    assert loop.is_closed()


def test_many_threads_share_one_loop() -> None:
    portal = Portal()
    loops: set[int] = set()

    async def note() -> None:
        loops.add(id(asyncio.get_running_loop()))

    threads = [threading.Thread(target=portal.call, args=(note,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loops) == 1
    portal.close()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Tests that run in the background of a shell have Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_caller_when_interrupted_then_what_it_waited_for_ends_too() -> None:
    portal = Portal()
    ended = threading.Event()

    async def wait() -> None:
        try:
            main = threading.main_thread().ident or 0
            asyncio.get_running_loop().call_later(0.1, signal.pthread_kill, main, signal.SIGINT)  # it waits by then
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        portal.call(wait)
    assert ended.wait(5)
    portal.close()
