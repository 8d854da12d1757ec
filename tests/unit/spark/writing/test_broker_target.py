"""What a task does at the cluster it writes to."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace

import pytest

from interpulse.client.producing.entry_sender import EntrySender
from interpulse.client.producing.unconfirmed import Receipt
from interpulse.model.errors import AuthorizationError, NotAllowed
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.replication.position_runs import Run
from interpulse.spark.lanes import pack_sequence
from interpulse.spark.writing.broker_target import BrokerTarget, LaneSender
from interpulse.spark.writing.collected_runs import CollectedRuns
from interpulse.spark.writing.write_options import WriteOptions


class Admin:
    """Knows, or fails to tell, whether a topic de-duplicates."""

    def __init__(self, answer):
        self.answer = answer
        self.topics = self

    async def stats(self, name):
        if isinstance(self.answer, Exception):
            raise self.answer
        return {"deduplicationStatus": self.answer}


@pytest.mark.parametrize(
    ("answer", "raised", "told"),
    [
        ("Enabled", None, ["opened"]),
        ("Disabled", NotAllowed, ["opened", "closed"]),
        (AuthorizationError("401"), AuthorizationError, ["opened", "closed"]),
    ],
)
async def test_lane_that_is_not_taken_gives_the_name_back(monkeypatch, answer, raised, told):
    seen = []

    async def note(sender, what):
        seen.append(what)

    async def takes_entries(session, topic):
        """It does."""

    monkeypatch.setattr(EntrySender, "__init__", lambda sender, session, topic, name, **rest: None)
    monkeypatch.setattr(EntrySender, "open", lambda sender: note(sender, "opened"))
    monkeypatch.setattr(EntrySender, "close", lambda sender: note(sender, "closed"))
    monkeypatch.setattr(EntrySender, "topic", TopicName.parse("t"))
    monkeypatch.setattr("interpulse.spark.writing.broker_target.check_takes_entries", takes_entries)
    target = BrokerTarget(
        SimpleNamespace(outages=None),  # type: ignore[arg-type]
        WriteOptions(service_url="pulsar://x:1"),
        admin=Admin(answer),  # type: ignore[arg-type]
    )
    with contextlib.nullcontext() if raised is None else pytest.raises(raised):
        await target.open_lane("t", "lane", is_new=True)
    assert seen == told


async def test_schema_is_registered_under_the_name_of_the_lane_that_meets_it(monkeypatch):
    """Also where another lane of the task was opened since, as with topics that are merged."""
    registered = []

    class Schemas:
        async def version(self, topic, version, *, producer_name):
            registered.append((topic, producer_name))
            return version

    async def opened(sender):
        """It is."""

    monkeypatch.setattr(EntrySender, "__init__", lambda sender, session, topic, name, **rest: None)
    monkeypatch.setattr(EntrySender, "open", opened)
    target = BrokerTarget(SimpleNamespace(outages=None), WriteOptions(service_url="pulsar://x:1"))  # type: ignore[arg-type]
    target._schemas = Schemas()  # type: ignore[assignment]
    for topic in ("a", "b"):
        await target.open_lane(topic, f"lane of {topic}", is_new=False)
    for topic in ("a", "b"):
        await target.schema_version(topic, b"1")
    assert registered == [("a", "lane of a"), ("b", "lane of b")]


class Sending:
    """An entry sender whose receipts are there at once: each run at the next positions, a marker behind it."""

    def __init__(self):
        self.end = 0

    async def send_run(self, sequence_ids, counts, entries, *, highest_sequence_id, is_chunk):
        return [self._receipt(sequence_ids)]

    async def send_marker(self, sequence_id, entry):
        return self._receipt([sequence_id])

    def _receipt(self, sequence_ids):
        first, self.end = self.end, self.end + len(sequence_ids)
        receipt: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        receipt.set_result(Receipt(sequence_ids, [Position(2, entry) for entry in range(first, self.end)]))
        return receipt


async def test_markers_have_receipts_but_are_no_copies():
    lane = LaneSender(Sending(), None, None)  # type: ignore[arg-type]
    lane.runs = CollectedRuns()
    await lane.send([pack_sequence(5, 0), pack_sequence(5, 1)], [1, 1], [b"", b""])
    await lane.send_marker(pack_sequence(5, 2), b"")
    await lane.send([pack_sequence(5, 3)], [1], [b""])
    lane.take_receipts()
    assert (lane.received_count, lane.last_position) == (3, Position(2, 3))
    assert lane.runs.take() == [
        Run(Position(5, 0), Position(2, 0), 2),
        Run(Position(5, 3), Position(2, 3), 1),
    ]
