"""Topics of a write that are not there."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from interpulse.model.errors import TopicNotFound
from interpulse.spark.writing.target_topics import TargetTopics


async def test_topic_that_producers_cannot_create_names_its_namespace_and_the_way_out():
    async def partitions(name, *, create):
        raise TopicNotFound(str(name))

    topics = TargetTopics(SimpleNamespace(lookup=SimpleNamespace(partitions=partitions), outages=None), "auto")  # type: ignore[arg-type]
    with pytest.raises(TopicNotFound, match=r"t/ns/x does not exist.*: t/ns is missing or does not.*createTopics"):
        await topics.partitions("persistent://t/ns/x")
