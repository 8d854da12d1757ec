"""The status of topic-partitions at the source's admin API, which keeps it for operators."""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import PulsarError
from interpulse.model.names import NamespaceName

log = logging.getLogger(__name__)

Records = list[dict[str, Any]]

_UNCHANGED_S: Final = 10.0
"""Time after which records that have not changed are sent again, because the source may have lost them."""


class StatusRecords:
    """The records that were sent last. They are sent again when they change, and now and then."""

    def __init__(self, source: AdminClient) -> None:
        self._source = source
        self._sent: dict[NamespaceName, tuple[Records, float]] = {}

    async def send(self, namespace: NamespaceName, records: Records) -> None:
        """Send the records of a namespace. A failure is logged, and the next call sends them."""
        sent, at = self._sent.get(namespace, (None, 0.0))
        if records == sent and time.monotonic() - at < _UNCHANGED_S:
            return
        try:
            await self._source.namespaces.report_replication_status(namespace, records)
        except PulsarError as error:
            self._sent.pop(namespace, None)
            log.debug("status not reported namespace=%s error=%s", namespace, error)
        else:
            self._sent[namespace] = records, time.monotonic()
