"""What a task does at the cluster it writes to."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

from interpulse.client.producing.entry_sender import EntrySender
from interpulse.model.errors import AuthorizationError, NotAllowed
from interpulse.model.names import TopicName
from interpulse.spark.writing.broker_target import BrokerTarget
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
