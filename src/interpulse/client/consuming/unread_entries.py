"""Acknowledgement of entries that were not received, by a consumer that takes none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import Final

from interpulse.client.session import Session
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import MessageRun
from interpulse.wire.ids import message_id_to_wire, words_of

_AT_ONCE: Final = 1000


async def acknowledge_unread(
    session: Session,
    topic: TopicName,
    subscription: str,
    positions: Iterable[Position],
    masks: Mapping[Position, int],
    *,
    consumer_name: str,
) -> None:
    """Acknowledge entries of a subscription, and parts of batches, without a permit for any message.

    It joins other consumers of type Shared. ``masks`` have the messages of a batch that still wait: bit i is message i.
    Raise ConsumerBusy while a consumer of another type is connected, MetadataError for an entry that the topic does not
    have, and other refusals.
    """
    connection = await session.connect(topic)
    consumer_id = session.next_id()
    subscribe = pb.CommandSubscribe(
        topic=str(topic),
        subscription=subscription,
        subType=pb.CommandSubscribe.Shared,
        consumer_id=consumer_id,
        consumer_name=consumer_name,
        durable=True,
        initialPosition=pb.CommandSubscribe.Earliest,
        force_topic_creation=False,
    )
    parts = (message_id_to_wire(position, words_of(mask)) for position, mask in masks.items())
    wanted = chain(map(message_id_to_wire, positions), parts)
    await connection.consumers.open(consumer_id, _Nothing(), subscribe)
    try:
        while portion := list(islice(wanted, _AT_ONCE)):
            await connection.request(
                pb.CommandAck(consumer_id=consumer_id, ack_type=pb.CommandAck.Individual, message_id=portion)
            )
    finally:
        await connection.consumers.close(consumer_id)


class _Nothing:
    """Listener of a consumer without permits, to which no message comes."""

    def on_message(self, message: pb.CommandMessage, entry: memoryview) -> None:
        """Ignore it: the consumer closes at once, and the message goes to another one."""

    def on_messages(self, run: MessageRun) -> None:
        """Ignore them; see :meth:`on_message`."""

    def on_active_change(self, active: bool) -> None: ...

    def on_end_of_topic(self) -> None: ...

    def on_leaving(self) -> None: ...

    def on_redirected(self, service_url: str) -> None: ...

    def on_disconnected(self, assigned_url: str | None) -> None: ...
