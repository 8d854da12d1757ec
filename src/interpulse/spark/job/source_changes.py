"""Changes of topics and policies on the source: reported by a cluster of ours, and possible each second elsewhere."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import AuthorizationError, NotFound

_WAIT_S: Final = 5.0
"""Time for which a request waits for a change. The job gives up requests after ten seconds."""
_UNREPORTED_S: Final = 30.0
"""Time after which a change is taken as possible although none was reported."""


class SourceChanges:
    """The changes on the source. Call `close` at the end."""

    def __init__(self, source: AdminClient) -> None:
        self._source = source
        self._reports: bool | None = None
        self._token = ""
        self._number = 0
        self._counted_at = 0.0
        self._waiting: asyncio.Task[str] | None = None

    async def number(self) -> int:
        """Return a number that is another one whenever something may have changed since the last call.

        Read what may have changed after this call. Raise the error of a source that does not answer.
        """
        if self._reports is None:
            self._reports = await self._are_reported()
        if not self._reports or await self._is_new() or time.monotonic() - self._counted_at >= _UNREPORTED_S:
            self._number += 1
            self._counted_at = time.monotonic()
        return self._number

    async def _are_reported(self) -> bool:
        try:
            return "supportsMetadataChanges" in await self._source.brokers.runtime_configuration()
        except (AuthorizationError, NotFound):
            return False

    async def _is_new(self) -> bool:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            self._waiting = waiting
            return False
        token = await (waiting or self._source.brokers.metadata_changes())
        is_new, self._token = token != self._token, token
        self._waiting = asyncio.create_task(self._source.brokers.metadata_changes(since=token, wait_s=_WAIT_S))
        return is_new

    async def close(self) -> None:
        """Stop waiting for a report."""
        if self._waiting is not None:
            self._waiting.cancel()
            await asyncio.gather(self._waiting, return_exceptions=True)
