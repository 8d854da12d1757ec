"""Dead-letter topics for messages that could not be processed, and retry letter topics for those to be tried later.

Topic names, properties and counts are those of Pulsar's Java client, so applications of both share the topics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from interpulse.client.consuming.consumer_config import DeadLetterPolicy
from interpulse.client.encryption.key_reader import CryptoKeyReader
from interpulse.client.messages import Message, OutgoingMessage
from interpulse.client.producing.partition_producer import ProducerConfig
from interpulse.client.producing.producer import Producer
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed, NotSupported
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType

REAL_TOPIC: Final = "REAL_TOPIC"
REAL_SUBSCRIPTION: Final = "REAL_SUBSCRIPTION"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
_ORIGIN_MESSAGE_ID_OLD: Final = "ORIGIN_MESSAGE_IDY_TIME"  # the name that the property had by mistake
RECONSUMETIMES: Final = "RECONSUMETIMES"
DELAY_TIME: Final = "DELAY_TIME"
LETTER_PROPERTIES: Final = frozenset(
    {REAL_TOPIC, REAL_SUBSCRIPTION, ORIGIN_MESSAGE_ID, _ORIGIN_MESSAGE_ID_OLD, RECONSUMETIMES, DELAY_TIME}
)
"""Properties of a letter that describe its origin, in addition to those of its message."""


class DeadLetterProducer:
    """Sends the dead letters and retry letters of one consumer. The first letter to a topic opens its producer.

    ``shared_origin`` is the topic that names all letter topics. None: each topic has its own dead-letter topic.
    ``key_reader`` has the public keys of the policy.
    """

    def __init__(
        self,
        session: Session,
        subscription: str,
        policy: DeadLetterPolicy,
        *,
        schema: SchemaInfo | None = None,
        shared_origin: TopicName | None = None,
        key_reader: CryptoKeyReader | None = None,
    ) -> None:
        self.redeliveries_max = policy.max_redeliver_count
        self._session = session
        self._subscription = subscription
        self._policy = policy
        # AUTO_CONSUME is a schema for reading only: letters are sent as they came, without one.
        self._schema = None if schema is not None and schema.type is SchemaType.AUTO_CONSUME else schema
        self._key_reader = key_reader
        self._shared_origin = shared_origin
        self._producers: dict[TopicName, Producer] = {}
        self._opening = asyncio.Lock()
        self._closed = False

    def dead_letter_topic(self, origin: TopicName) -> TopicName:
        """Return the dead-letter topic of this topic or partition."""
        base = (self._shared_origin or origin).base
        return TopicName.parse(self._policy.dead_letter_topic or f"{base}-{self._subscription}-DLQ")

    def retry_letter_topic(self, origin: TopicName) -> TopicName:
        """Return the retry letter topic of this topic or partition."""
        base = (self._shared_origin or origin).base
        return TopicName.parse(self._policy.retry_letter_topic or f"{base}-{self._subscription}-RETRY")

    async def send_dead_letter(self, message: Message) -> None:
        """Send a copy of the message to its dead-letter topic. Raise the broker's refusal."""
        await self._send_dead_letter(message, self._properties(message))

    async def send_retry_letter(self, message: Message, delay_ms: int, properties: Mapping[str, str]) -> None:
        """Send a copy to the retry letter topic, to be delivered after the delay.

        After too many tries it goes to the dead-letter topic. ``properties`` replace those of the message.
        """
        tries = int(message.properties.get(RECONSUMETIMES, "0")) + 1
        marked = {
            **self._properties(message),
            **properties,
            RECONSUMETIMES: str(tries),
            DELAY_TIME: str(max(delay_ms, 0)),
        }
        if tries > self.redeliveries_max:
            await self._send_dead_letter(message, marked)
            return
        topic = self.retry_letter_topic(TopicName.parse(message.topic))
        letter = self._copy(message, marked, deliver_after_ms=delay_ms if delay_ms > 0 else None)
        producer = await self._producer(topic, None)
        await producer.send(letter)

    async def _send_dead_letter(self, message: Message, properties: Mapping[str, str]) -> None:
        topic = self.dead_letter_topic(TopicName.parse(message.topic))
        letter = self._copy(message, properties)
        producer = await self._producer(topic, self._policy.initial_subscription_name)
        await producer.send(letter)

    async def _producer(self, topic: TopicName, initial_subscription: str | None) -> Producer:
        async with self._opening:
            if self._closed:
                raise AlreadyClosed("the consumer is closed")
            producer = self._producers.get(topic)
            if producer is None:
                config = ProducerConfig(
                    schema=self._schema,
                    batching_enabled=False,
                    initial_subscription_name=initial_subscription,
                    encryption_keys=self._policy.encryption_keys,
                    crypto_key_reader=self._key_reader if self._policy.encryption_keys else None,
                )
                producer = Producer(self._session, topic, config)
                await producer.open()
                self._producers[topic] = producer
            return producer

    def _properties(self, message: Message) -> dict[str, str]:
        """Return the letter's properties. A message that was a letter before keeps its first origin."""
        origin = {
            REAL_TOPIC: message.topic,
            REAL_SUBSCRIPTION: self._subscription,
            ORIGIN_MESSAGE_ID: str(message.id),
            _ORIGIN_MESSAGE_ID_OLD: str(message.id),
        }
        return origin | dict(message.properties)

    def _copy(
        self, message: Message, properties: Mapping[str, str], deliver_after_ms: int | None = None
    ) -> OutgoingMessage:
        """Copy a message. A message that came encrypted is encrypted again."""
        if message.is_encrypted:
            raise NotSupported(f"message {message.id} of {message.topic} is encrypted, it cannot be copied as a letter")
        if message.was_encrypted and not self._policy.encryption_keys:
            raise NotSupported(
                f"message {message.id} of {message.topic} came encrypted and is not copied unencrypted as a letter: "
                f"name the keys for letters in encryption_keys of the dead_letter_policy"
            )
        return OutgoingMessage(
            message.content,
            message.key_bytes if message.key_is_binary else message.key,
            properties=properties,
            event_time_ms=message.event_time_ms,
            ordering_key=message.ordering_key,
            deliver_after_ms=deliver_after_ms,
        )

    async def close(self) -> None:
        """Close the producers. Letters in flight fail with AlreadyClosed."""
        async with self._opening:
            self._closed = True
            await asyncio.gather(*(producer.close() for producer in self._producers.values()), return_exceptions=True)


class DeadLetterCandidates:
    """Messages that have been redelivered as often as the policy allows.

    The next redelivery makes them dead letters.

    With an infinite ``redeliveries_max`` there are none.
    """

    def __init__(self, redeliveries_max: float) -> None:
        self._redeliveries_max = redeliveries_max
        self._messages: dict[Position, dict[int, Message]] = {}

    def is_dead(self, message: Message) -> bool:
        """Return True if the message was redelivered more often than the policy allows."""
        return message.redelivery_count > self._redeliveries_max

    def add(self, message: Message) -> None:
        """Record that the application has received the message."""
        if message.redelivery_count >= self._redeliveries_max:
            self._messages.setdefault(message.id.position, {})[message.id.batch_index] = message

    def discard(self, message: Message) -> None:
        """Drop an acknowledged message."""
        others = self._messages.get(message.id.position)
        if others is not None:
            others.pop(message.id.batch_index, None)
            if not others:
                del self._messages[message.id.position]

    def take(self, position: Position) -> list[Message]:
        """Remove and return the candidates of an entry to be redelivered. They become dead letters instead."""
        return list(self._messages.pop(position, {}).values())

    def clear(self) -> None:
        self._messages.clear()
