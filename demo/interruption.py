"""The run of a demonstration up to its verdict, and its end at Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any


async def run_until_interrupted(
    job: Coroutine[Any, Any, int], abandoned: threading.Event, stay: Callable[[], object] | None
) -> int:
    """Return the exit code of ``job``, or 1 if Ctrl-C or SIGTERM ends it, which sets ``abandoned`` for its threads.

    ``stay`` is called after the job and announces that everything runs until Ctrl-C. None ends everything.
    """
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    main_job = asyncio.create_task(job)
    interruption = asyncio.create_task(interrupted.wait())
    await asyncio.wait((main_job, interruption), return_when=asyncio.FIRST_COMPLETED)
    if not main_job.done():
        abandoned.set()
        main_job.cancel()
        await asyncio.gather(main_job, return_exceptions=True)
        return 1
    try:
        exit_code = main_job.result()
        if stay is not None:
            stay()
            await interruption
        return exit_code
    finally:
        interruption.cancel()
