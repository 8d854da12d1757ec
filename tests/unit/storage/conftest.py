"""A fault in a callback or in the writer's thread ends the test, which would wait for an answer that never comes."""

from __future__ import annotations

import asyncio
import threading

import pytest


@pytest.fixture(autouse=True)
async def faults_end_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancels the test when the loop or a thread has an exception that no caller gets."""
    loop = asyncio.get_running_loop()

    def end_test() -> None:
        for task in asyncio.all_tasks(loop):
            task.cancel("a callback or a thread failed; its exception is in the log")

    def on_loop(at: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        at.default_exception_handler(context)
        end_test()

    def on_thread(fault: threading.ExceptHookArgs) -> None:
        threading.__excepthook__(fault)
        loop.call_soon_threadsafe(end_test)

    loop.set_exception_handler(on_loop)
    monkeypatch.setattr(threading, "excepthook", on_thread)
