"""The sender of ready-made entries, as far as it differs from the queue below it."""

from __future__ import annotations

import pytest

from interpulse.client.producing.entry_sender import EntrySender
from interpulse.client.session import Session
from interpulse.model.errors import NotAllowed
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support.scripted_broker import ScriptedBroker

TOPIC = TopicName.parse("t")
ENTRY = b"\x00" * 20


async def test_entry_when_its_permit_is_refused_then_is_not_sent(broker: ScriptedBroker, session: Session) -> None:
    """Asked right before each entry, and before each group of a run."""
    asked: list[int] = []

    async def permit(sequence_id: int) -> None:
        asked.append(sequence_id)
        if sequence_id in (3, 10):
            raise NotAllowed(f"{sequence_id} was skipped")

    async with EntrySender(session, TOPIC, "p", window_entries=4, permit=permit) as sender:
        await sender.open()
        await (await sender.send_entry(ENTRY, sequence_id=2))
        with pytest.raises(NotAllowed, match="3 was skipped"):
            await sender.send_entry(ENTRY, sequence_id=3)
        with pytest.raises(NotAllowed, match="10 was skipped"):
            await sender.send_run([8, 9, 10, 11], [1] * 4, [ENTRY] * 4)
        await sender.drain()
    assert (asked, broker.stored) == ([2, 3, 8, 10], [2, 8, 9])


async def test_marker_when_sent_then_is_flagged_and_its_permit_asked(broker: ScriptedBroker, session: Session) -> None:
    asked: list[int] = []

    async def permit(sequence_id: int) -> None:
        asked.append(sequence_id)

    async with EntrySender(session, TOPIC, "p", permit=permit) as sender:
        await sender.open()
        first = await sender.send_entry(ENTRY, sequence_id=6)
        marker = await sender.send_marker(7, ENTRY)
        assert [(await each).sequence_id for each in (first, marker)] == [6, 7]
    sent = [command.send for command in broker.all_of(pb.BaseCommand.SEND)]
    assert ([each.marker for each in sent], asked) == ([False, True], [6, 7])
