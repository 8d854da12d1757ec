"""Producers look the same in the statistics of persistent and of non-persistent topics."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.api import TopicSettings
from interpulse.broker.live.topic.non_persistent import NonPersistentTopic
from interpulse.broker.live.topic.publish_stats import publish_measure, publish_stats
from interpulse.model.names import TopicName


@pytest.mark.parametrize("persistent", [True, False])
async def test_what_producers_published_counts_also_when_they_are_gone(bench: Any, persistent: bool) -> None:
    topic = await bench.topic()
    if not persistent:
        topic = NonPersistentTopic(
            TopicName.parse("non-persistent://public/default/x"), bench.registry, TopicSettings()
        )
    gone, _ = await bench.producer(topic, "gone")
    stays, _ = await bench.producer(topic, "stays")
    for producer in (gone, stays):
        producer.publish([0], [bench.entry(0)])
    await bench.settle()
    gone.close()
    shown, measure = publish_stats(topic), publish_measure(topic)
    assert [each["producerName"] for each in shown["publishers"]] == ["stays"]
    assert (shown["msgInCounter"], measure.messages_in, measure.producers) == (2, 2, 1)
    assert shown["bytesInCounter"] == measure.bytes_in == 2 * len(bench.entry(0))
    stays.close()
    assert publish_measure(topic).messages_in == 2
