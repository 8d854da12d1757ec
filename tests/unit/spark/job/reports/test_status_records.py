"""Status records at the source: sent when they change, and repeated now and then."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.model.errors import NotConnected
from interpulse.model.names import PUBLIC_DEFAULT, NamespaceName
from interpulse.spark.job.reports import status_records
from interpulse.spark.job.reports.status_records import StatusRecords


class Source:
    """An admin API that keeps the records."""

    def __init__(self) -> None:
        self.namespaces = self
        self.kept: list[Any] = []
        self.failure: Exception | None = None

    async def report_replication_status(self, namespace: NamespaceName, records: Any) -> None:
        if self.failure is not None:
            raise self.failure
        self.kept.append((namespace, records))


async def send(records: Any, *numbers: int) -> None:
    for number in numbers:
        await records.send(PUBLIC_DEFAULT, [{"topic": "t", "lagEntries": number}])


async def test_records_when_they_do_not_change_then_sent_once() -> None:
    source: Any = Source()
    await send(StatusRecords(source), 0, 0, 1, 1, 0)
    assert [records[0]["lagEntries"] for _, records in source.kept] == [0, 1, 0]


async def test_records_when_they_do_not_change_for_long_then_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_records, "_UNCHANGED_S", 0)
    source: Any = Source()
    await send(StatusRecords(source), 0, 0)
    assert len(source.kept) == 2


async def test_records_that_were_not_taken_then_sent_by_the_next_call() -> None:
    source: Any = Source()
    records = StatusRecords(source)
    source.failure = NotConnected("east is away")
    await send(records, 0)
    source.failure = None
    await send(records, 0, 0)
    assert len(source.kept) == 1
