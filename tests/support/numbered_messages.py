"""Messages whose payloads are numbers, published with our client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interpulse.sync import Client


def publish(
    client: Client, topic: str, numbers: Iterable[int], *, text: str = "{}", keys: int = 7, **options: Any
) -> None:
    """Publish each number and wait for the receipts.

    The number stands in ``text``, selects one of ``keys`` keys, is the property ``n``, and counts from 1000 as event
    time. The ``options`` are those of the producer.
    """
    with client.create_producer(topic, **options) as producer:
        for number in numbers:
            producer.send_async(
                text.format(number).encode(),
                key=f"k{number % keys}",
                properties={"n": str(number)},
                event_time_ms=1000 + number,
            )
        producer.flush()


def publish_to(service_url: str, topic: str, numbers: Iterable[int], **options: Any) -> None:
    """Publish like `publish`, with a client of its own."""
    with Client(service_url) as client:
        publish(client, topic, numbers, **options)
